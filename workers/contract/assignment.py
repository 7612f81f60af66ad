"""One attempt of a job on its way to a host: the spec, and which process runs where."""

from __future__ import annotations

from typing import Literal

from workers.contract.base import Strict
from workers.contract.layout import ProcessAssignment
from workers.contract.spec import JobSpec


class Assignment(Strict):
    """Sent to every host that takes part; each starts those of `processes` that bear its name.

    `attempt` is unique for ever and is the fencing number: everything a host tells carries it, and the control plane
    refuses what comes from an attempt that it has already ended.
    """

    version: Literal["lockstep/v1"] = "lockstep/v1"
    job: int
    attempt: int
    spec: JobSpec
    processes: tuple[ProcessAssignment, ...]
    resume: str | None = None
    """Key in the artifact store (contract/store.py) of the checkpoint to go on from."""

    def on_host(self, host: str) -> tuple[ProcessAssignment, ...]:
        """The processes that `host` must start."""
        return tuple(process for process in self.processes if process.host == host)


class Place(Strict):
    """What one engine process is told: `python -m workers.training.process PLACE.json`.

    `run` is the folder for `events/<process>.jsonl`, `logs/` and `model.keras`. `processes` are all of the job, in
    order, with their final ports; the process with the lowest index of role chief, else worker, is the chief and alone
    writes what there is to write once.
    """

    spec: JobSpec
    process: ProcessAssignment
    processes: tuple[ProcessAssignment, ...]
    run: str
    resume: str | None = None
    """Folder, on this host, of the checkpoint to go on from."""

    @property
    def chief(self) -> bool:
        """The one place where it is decided who is chief."""
        leader = next((p for p in self.processes if p.role == "chief"), None) or self.processes[0]
        return leader.name == self.process.name

    @property
    def serves(self) -> bool:
        """Whether the process only obeys: where there is a process of role chief, it drives all others."""
        return self.process.role != "chief" and any(process.role == "chief" for process in self.processes)

    @property
    def replicas(self) -> int:
        """Model copies in the whole job."""
        return sum(len(process.replicas) for process in self.processes)
