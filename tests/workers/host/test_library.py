"""Files of the library reach a host once, whole, and under a name that their plugin opens."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.workers.contract.keras_files import entry, layer, sequential, write
from workers.contract.library import Inspection, Report, file_key, localized, references, report_key
from workers.contract.spec import JobSpec, parse
from workers.contract.store import Store
from workers.host import inspecting, library
from workers.host.settings import HostSettings

UPLOAD = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def stored(store: Store, folder: Path, *layers: dict[str, Any]) -> str:
    """The digest of a `.keras` file that lies in the store."""
    path = write(folder / "sent.keras", sequential(*layers) if layers else None)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    store.put(path, file_key(digest))
    return digest


def spec_of(sha256: str, seed_spec: dict[str, Any]) -> JobSpec:
    model = {"name": "keras_file", "options": {"file": f"library:7@{sha256}"}}
    return parse({**seed_spec, "model": model})


def test_it_fetches_once_and_names_the_path(store: Store, tmp_path: Path, seed_spec: dict[str, Any]) -> None:
    digest = stored(store, tmp_path)
    here = tmp_path / "here"
    spec = spec_of(digest, seed_spec)
    delivered = library.deliver(spec, store.url, here)
    path = Path(delivered.model.options["file"])
    assert path == here / f"{digest}.keras"
    assert library.digest(path) == digest
    assert references(delivered) == {}
    store.remove(file_key(digest))
    assert library.deliver(spec, store.url, here) == delivered


def test_it_leaves_other_specs_alone(tmp_path: Path, seed_spec: dict[str, Any]) -> None:
    spec = parse(seed_spec)
    assert library.deliver(spec, str(tmp_path), tmp_path / "here") is spec
    assert localized(spec, tmp_path) is spec
    assert not (tmp_path / "here").exists()


def test_it_keeps_nothing_that_is_not_what_was_uploaded(
    store: Store, tmp_path: Path, seed_spec: dict[str, Any]
) -> None:
    digest = stored(store, tmp_path)
    (tmp_path / "other").write_bytes(b"something else")
    store.put(tmp_path / "other", file_key(digest))
    with pytest.raises(library.Torn, match="other bytes"):
        library.deliver(spec_of(digest, seed_spec), store.url, tmp_path / "here")
    assert not [path for path in (tmp_path / "here").iterdir() if not path.name.endswith(".lock")]


def test_it_says_when_the_store_has_it_no_more(store: Store, tmp_path: Path, seed_spec: dict[str, Any]) -> None:
    with pytest.raises(FileNotFoundError):
        library.deliver(spec_of("0" * 64, seed_spec), store.url, tmp_path / "here")


def test_it_sweeps_what_no_job_asked_for_in_a_month(store: Store, tmp_path: Path) -> None:
    here = tmp_path / "here"
    old = library.fetch(store, stored(store, tmp_path), "keras_file", here)
    os.utime(old, (time.time() - 40 * 86400,) * 2)
    assert library.sweep(here) == 1
    assert not old.exists()


@pytest.fixture
def settings(store: Store, tmp_path: Path) -> HostSettings:
    found = HostSettings(
        lockstep_runs=tmp_path / "runs", lockstep_store=store.url, lockstep_host="box", redis_url="redis://localhost"
    )
    found.library.mkdir(parents=True)
    return found


def test_it_keeps_no_file_that_it_refuses(store: Store, tmp_path: Path, settings: HostSettings) -> None:
    digest = stored(store, tmp_path, entry(4), layer("Lambda"))
    assert inspecting.answer(settings, Inspection(upload=UPLOAD, format="keras_file", sha256=digest))
    with store.open(report_key(UPLOAD)) as file:
        assert "Lambda" in Report.model_validate_json(file.read()).refused
    assert not list(settings.library.glob(f"{digest}*"))


def test_it_answers_an_order_once(store: Store, settings: HostSettings) -> None:
    gone = Inspection(upload=UPLOAD, format="keras_file", sha256="0" * 64)
    assert inspecting.answer(settings, gone)
    with store.open(report_key(UPLOAD)) as file:
        report = Report.model_validate_json(file.read())
    assert report.host == "box"
    assert "could not fetch it" in report.refused
    assert not inspecting.answer(settings, gone)
