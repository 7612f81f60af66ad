"""Files in the artifact store: whole or not at all, and never outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.contract.store import Store, artifact_key, checkpoint_key


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store") if request.param == "folder" else f"memory://{tmp_path.name}")


def test_what_was_put_is_read_again(store: Store, tmp_path: Path) -> None:
    source, back = tmp_path / "a", tmp_path / "deep" / "b"
    source.write_bytes(b"weights")
    key = artifact_key(7, "model.keras")
    store.put(source, key)
    store.get(key, back)
    assert back.read_bytes() == b"weights"
    assert store.size(key) == 7
    with store.open(key) as stream:
        stream.seek(3)
        assert stream.read() == b"ghts"


def test_names_and_removal_of_a_folder(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.write_bytes(b"1")
    for name in ("manifest.json", "state.npz"):
        store.put(source, f"{checkpoint_key(7, 'step-50')}/{name}")
    assert store.names(checkpoint_key(7, "step-50")) == ["manifest.json", "state.npz"]
    store.remove(checkpoint_key(7, "step-50"))
    store.remove(checkpoint_key(7, "step-50"))
    assert not store.has(checkpoint_key(7, "step-50"))
    assert store.names(checkpoint_key(7, "step-50")) == []


def test_a_missing_file_is_said_to_be_missing(store: Store, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.get("jobs/1/artifacts/none", tmp_path / "x")


def test_a_copy_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    source = tmp_path / "a"
    source.write_bytes(b"old")
    store.put(source, "k")
    with pytest.raises(FileNotFoundError):
        store.put(tmp_path / "missing", "k")
    with store.open("k") as stream:
        assert stream.read() == b"old"
    assert store.names("jobs") == []
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["k"]


@pytest.mark.parametrize("key", ["../x", "a//b", "", "/a", "a/./b", "a/../../b"])
def test_no_key_leads_out(store: Store, key: str) -> None:
    with pytest.raises(ValueError, match="is not a plain path"):
        store.has(key)


def test_an_address_that_nothing_opens_is_refused() -> None:
    with pytest.raises(ValueError, match=r"LOCKSTEP_STORE|not known"):
        Store("s3://bucket/x")
