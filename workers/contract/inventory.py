"""What a training host says of itself, every few seconds."""

from __future__ import annotations

from pydantic import Field

from workers.contract.base import Strict
from workers.contract.layout import DeviceKind


class DeviceInfo(Strict):
    """One device that jobs can be given. `index` is the CUDA index for GPUs, a slot number for logical CPU devices."""

    kind: DeviceKind
    index: int = Field(ge=0)
    name: str
    memory_bytes: int | None = None


class SelfTest(Strict):
    """What the host's own small trainings showed, by case (workers/contract/selftest.py names them).

    `failures` maps a case to the one sentence that it failed with; `passed` lists the others that were tried.
    `unavailable` maps a strategy, none of whose cases can be tried there, to why (no TPU). `key` names the versions and
    the kind of device that they were tried with; results of another key do not count.
    """

    key: str
    passed: tuple[str, ...] = ()
    failures: dict[str, str] = Field(default_factory=dict)
    unavailable: dict[str, str] = Field(default_factory=dict)
    complete: bool = False


class Inventory(Strict):
    """A host's devices and what it can do; `unavailable` maps a dataset's name to why it cannot be loaded there."""

    host: str
    address: str
    cores: int
    memory_bytes: int
    devices: tuple[DeviceInfo, ...]
    versions: dict[str, str] = Field(default_factory=dict, description="python, tensorflow, keras, lockstep")
    unavailable: dict[str, str] = Field(default_factory=dict)
    port_range: tuple[int, int] = (20000, 29999)
    load: float = Field(0.0, description="One-minute load average.")
    selftest: SelfTest | None = Field(None, description="None while nothing new has been tried.")
    attempts: tuple[int, ...] = Field((), description="Attempts whose supervisor lives there.")
