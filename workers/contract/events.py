"""What training hosts tell, one JSON line an event, in files that only grow.

The engine's processes write `RUN/events/<process>.jsonl`, the supervisor `RUN/events/supervisor@<host>.jsonl`. An event
is identified by its file and its byte offset there; that is what makes shipping idempotent and resumable.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from workers.contract.base import Strict

PhaseName = Literal[
    "preparing",
    "importing",
    "connecting",
    "loading",
    "building",
    "compiling",
    "training",
    "evaluating",
    "predicting",
    "saving",
]


class _Event(Strict):
    time: float = Field(description="Seconds since 1970 by the host's clock.")
    process: str = Field(description="worker-0, ps-0, chief-0 or supervisor@<host>.")


class Phase(_Event):
    """A process entered a phase; `detail` is a sentence for the status strip, possibly empty."""

    type: Literal["phase"] = "phase"
    phase: PhaseName
    detail: str = ""


class ReplicaInfo(Strict):
    """One model copy: where it computes, and what its utilization is read from."""

    replica: int
    process: str
    device: str
    gauge: Literal["process", "device"] = "process"
    weight_bytes: int | None = Field(None, description="Weights and optimizer slots there, where a model is split.")


class Started(_Event):
    """The chief has built everything and is about to take the first step. All figures are exact.

    `global_batch` counts the examples of one optimizer step, all its micro-batches together.
    """

    type: Literal["started"] = "started"
    replicas: tuple[ReplicaInfo, ...]
    global_batch: int
    per_replica_batch: int
    steps_per_epoch: int
    total_steps: int
    training_samples: int
    validation_samples: int
    test_samples: int
    parameters: int
    peak_learning_rate: float
    steps_per_call: int
    versions: dict[str, str]


class SeriesPoints(Strict):
    """Points of one series, oldest first; the three lists are of one length.

    `steps` never falls within a process's file; `times` are seconds since 1970; `values` may be NaN or infinite.
    `replica` is None for what concerns the whole job.
    """

    name: str
    replica: int | None = None
    steps: list[int]
    times: list[float]
    values: list[float]


class Points(_Event):
    """A batch of points of any number of series. `step` is the newest finished step, `epoch` counts from 1."""

    type: Literal["points"] = "points"
    step: int
    epoch: int
    series: list[SeriesPoints]


class Artifact(_Event):
    """A file was finished (written under a temporary name, then renamed)."""

    type: Literal["artifact"] = "artifact"
    name: str
    path: str
    bytes: int
    sha256: str


class CheckpointSaved(_Event):
    """A checkpoint is whole on the chief's disk. `path` is its folder, `sha256` its manifest's, `bytes` all its files'.

    `metrics` are the newest values then; `best` says that it is the best so far by the spec's `checkpoint.best`.
    """

    type: Literal["checkpoint"] = "checkpoint"
    name: str
    path: str
    step: int
    samples_seen: int
    bytes: int
    sha256: str
    seconds: float = Field(description="From the snapshot to the manifest; the steps go on meanwhile.")
    metrics: dict[str, float] = Field(default_factory=dict)
    best: bool = False


class CheckpointDropped(_Event):
    """A checkpoint gave way to newer ones."""

    type: Literal["checkpoint_dropped"] = "checkpoint_dropped"
    name: str


class Stored(_Event):
    """The supervisor has put a checkpoint or an artifact whole into the artifact store (contract/store.py)."""

    type: Literal["stored"] = "stored"
    kind: Literal["checkpoint", "artifact"]
    name: str
    bytes: int


class NotStored(_Event):
    """The supervisor has given up putting it there; it lies on `host` at `path` only, because of `cause`."""

    type: Literal["not_stored"] = "not_stored"
    kind: Literal["checkpoint", "artifact"]
    name: str
    host: str
    path: str
    cause: str


class Failed(_Event):
    """The process is about to end because of this; `cause` is one sentence for people."""

    type: Literal["failed"] = "failed"
    cause: str
    reason: Literal["data", "memory", "nan", "peer", "network", "device", "error"] = "error"
    traceback: str = ""


class Finished(_Event):
    """The chief did all it was asked for. `metrics` holds the last value of each evaluated and trained metric.

    `stopped_early` says in a clause why there were fewer steps than planned, else it is empty.
    """

    type: Literal["finished"] = "finished"
    metrics: dict[str, float]
    step: int
    stopped_early: str = ""


class Spawned(_Event):
    """The supervisor started a process."""

    type: Literal["spawned"] = "spawned"
    target: str
    host: str
    pid: int
    devices: tuple[str, ...]


class Exited(_Event):
    """The supervisor saw a process end. `code` is None when a `signal` ended it."""

    type: Literal["exited"] = "exited"
    target: str
    code: int | None = None
    signal: str | None = None


class Ended(_Event):
    """The supervisor's last word on the attempt: all its processes on this host are gone.

    `target` is the process that caused a failure and `log_tail` the end of its stderr.
    """

    type: Literal["ended"] = "ended"
    outcome: Literal["succeeded", "failed", "cancelled", "paused"]
    cause: str = ""
    target: str | None = None
    log_tail: str = ""


_AnyEvent = (
    Phase
    | Started
    | Points
    | Artifact
    | CheckpointSaved
    | CheckpointDropped
    | Stored
    | NotStored
    | Failed
    | Finished
    | Spawned
    | Exited
    | Ended
)
Event = Annotated[_AnyEvent, Field(discriminator="type")]
_adapter: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(line: str | bytes) -> Event:
    """One line of an event file. Raises pydantic.ValidationError."""
    return _adapter.validate_json(line)


def to_line(event: Event) -> bytes:
    """One event as one line, newline included."""
    return event.model_dump_json(exclude_defaults=False).encode() + b"\n"
