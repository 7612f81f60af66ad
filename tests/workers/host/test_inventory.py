"""What the host says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workers.host.samples import spec_with
from workers.contract import catalog
from workers.host.inventory import Surveyor, cpu_slots, unavailable_datasets, versions
from workers.host.settings import HostSettings


def test_it_offers_numbered_places_on_the_cpu() -> None:
    assert [device.index for device in cpu_slots(3)] == [0, 1, 2]
    assert cpu_slots(0) == ()


def test_it_says_why_a_dataset_cannot_be_loaded_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setenv("LOCKSTEP_OFFLINE", "1")
    reasons = unavailable_datasets()
    assert str(tmp_path) in reasons["mnist"]
    assert "digits" not in reasons
    assert set(reasons) <= set(catalog.entries("dataset"))
    assert spec_with().dataset.name not in reasons


def test_it_survives_a_dataset_whose_probe_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options: object, home: Path) -> str | None:
        raise RuntimeError("no such disk")

    monkeypatch.setattr(catalog.find("dataset", "digits").module, "probe", broken)
    assert "no such disk" in unavailable_datasets()["digits"]


def test_it_knows_the_versions_without_importing_tensorflow() -> None:
    assert set(versions()) >= {"python", "lockstep", "tensorflow", "keras"}


def test_it_names_the_attempts_that_live_here(tmp_path: Path) -> None:
    from workers.host.runs import RunFolder

    settings = HostSettings(lockstep_runs=tmp_path, lockstep_host="here")
    for attempt in (3, 4):
        RunFolder(tmp_path / str(attempt)).ask_to_stop()
    with RunFolder(tmp_path / "4").lock() as ours:
        assert ours
        assert Surveyor(settings).survey().attempts == (4,)
    assert Surveyor(settings).survey().attempts == ()
