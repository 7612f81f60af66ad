"""The environment of a training host, checked at the door."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from workers.host.settings import HostSettings


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("LOCKSTEP_") or name == "REDIS_URL":
            monkeypatch.delenv(name)


def test_it_reads_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOCKSTEP_HOST", "gpu-1")
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path))
    monkeypatch.setenv("LOCKSTEP_PORT_RANGE", "30000-30010")
    settings = HostSettings()
    assert (settings.lockstep_host, settings.lockstep_runs) == ("gpu-1", tmp_path)
    assert settings.port_range == (30000, 30010)


def test_it_has_a_default_for_everything() -> None:
    settings = HostSettings()
    assert settings.lockstep_cpu_devices >= 4
    assert settings.address == "127.0.0.1"
    assert settings.lockstep_runs.is_absolute()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lockstep_port_range", "80"),
        ("lockstep_port_range", "30000-20000"),
        ("lockstep_port_range", "20000-70000"),
        ("lockstep_host", "../etc"),
        ("lockstep_host", ""),
        ("redis_url", "http://localhost"),
        ("lockstep_isolate", "maybe"),
        ("lockstep_cpu_devices", "-1"),
        ("lockstep_tpu_cores", "0"),
    ],
)
def test_it_refuses(monkeypatch: pytest.MonkeyPatch, field: str, value: str) -> None:
    monkeypatch.setenv(field.upper(), value)
    with pytest.raises(ValidationError, match=field):
        HostSettings()


@pytest.mark.parametrize(("given", "told"), [("on", "1"), ("true", "1"), ("false", "0"), (None, "0")])
def test_it_tells_the_plugins_whether_the_host_is_offline(
    monkeypatch: pytest.MonkeyPatch, given: str | None, told: str
) -> None:
    monkeypatch.setenv("LOCKSTEP_OFFLINE", given or "0")
    HostSettings().export()
    assert os.environ["LOCKSTEP_OFFLINE"] == told


def test_it_describes_every_setting() -> None:
    assert all(field.description for field in HostSettings.model_fields.values())
