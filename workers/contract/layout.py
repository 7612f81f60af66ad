"""What a strategy needs to run: which processes, on how many devices each, holding which replicas."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from workers.contract.base import Strict

DeviceKind = Literal["cpu", "gpu", "tpu"]
Role = Literal["chief", "worker", "ps"]


class ProcessShape(Strict):
    """One operating-system process of a job, before it is given a place.

    `devices` is how many devices of the host it needs; `indexes` names them when the user chose (empty: any). Each
    device is split into `split` logical ones, and when `computes` is true, every `shards` logical devices hold one
    replica together. Where it has fewer, the processes after it that `follow` hold the rest: a replica counts once, in
    the process in which it begins.
    A process that is not `essential` may die once it has told the phase `training`: the job goes on without it.
    """

    role: Role = "worker"
    index: int = Field(0, ge=0)
    kind: Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    devices: int = Field(1, ge=0)
    indexes: tuple[int, ...] = ()
    split: int = Field(1, ge=1)
    shards: int = Field(1, ge=1)
    computes: bool = True
    follows: bool = False
    essential: bool = True

    @property
    def name(self) -> str:
        """`worker-0`: how logs, charts and errors call it."""
        return f"{self.role}-{self.index}"

    @property
    def replicas(self) -> int:
        """Model copies that begin in this process."""
        return -(-self.devices * self.split // self.shards) if self.computes and not self.follows else 0


class Layout(Strict):
    """All processes of one job; they start together or not at all.

    Replicas that are `asynchronous` step each on their own, with their share of the global batch.
    """

    processes: tuple[ProcessShape, ...] = Field(min_length=1)
    asynchronous: bool = False

    @property
    def replicas(self) -> int:
        """Model copies in the whole job: what the global batch is shared by."""
        return sum(process.replicas for process in self.processes)

    @property
    def clustered(self) -> bool:
        """Whether the processes need addresses of one another (TF_CONFIG)."""
        return len(self.processes) > 1


class ProcessAssignment(Strict):
    """A process with its place. `port` 0 lets the host's supervisor pick a free one (all processes on one host)."""

    name: str
    role: Role
    index: int = Field(ge=0)
    host: str
    address: str = "127.0.0.1"
    port: int = Field(0, ge=0, le=65535)
    kind: DeviceKind
    devices: tuple[int, ...]
    split: int = Field(1, ge=1)
    shards: int = Field(1, ge=1)
    replicas: tuple[int, ...]
    essential: bool = True


def assign(
    shape: ProcessShape,
    *,
    first_replica: int,
    host: str,
    address: str,
    kind: DeviceKind,
    devices: tuple[int, ...],
    port: int = 0,
) -> ProcessAssignment:
    """Give `shape` its place; its replicas are numbered from `first_replica` on, in the order of the processes."""
    return ProcessAssignment(
        name=shape.name,
        role=shape.role,
        index=shape.index,
        host=host,
        address=address,
        port=port,
        kind=kind,
        devices=devices,
        split=shape.split,
        shards=shape.shards,
        replicas=tuple(range(first_replica, first_replica + shape.replicas)),
        essential=shape.essential,
    )
