"""Synchronous replicas in several processes, on one host or many."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.layout import Layout, ProcessShape
from workers.contract.problems import Problem
from workers.training.devices import DeviceError

title = "Multi-worker mirrored"
summary = "Several processes, on one host or many; gradients are summed over all of them at every step."


class Options(_Options):
    """How many workers, and how they talk."""

    workers: int = Field(2, ge=1, le=256, title="Workers", description="Processes; each may run on another host.")
    communication: Literal["auto", "ring", "nccl"] = Field(
        "auto", title="Communication", description="How gradients are summed. Ring works everywhere, NCCL needs GPUs."
    )
    devices_per_worker: int = Field(
        1, ge=1, le=64, title="Devices per worker", description="Replicas in each process. More than 1 needs GPUs."
    )
    device_type: Literal["auto", "cpu", "gpu"] = Field(
        "auto", title="Device type", description="Auto takes GPUs where there are enough, else CPUs."
    )
    bytes_per_pack: int = Field(
        32 * 2**20,
        ge=1024,
        le=2**31 - 1,
        title="Bytes per pack",
        description="Gradients travel together in messages of at most so many bytes; a larger one travels alone.",
        json_schema_extra={"advanced": True, "unit": "bytes"},
    )
    timeout_seconds: float | None = Field(
        None,
        ge=1,
        le=86_400,
        allow_inf_nan=False,
        title="Time-out",
        description="The job fails when a worker waits for the others for longer than this; empty waits for ever. "
        "Longer than whatever one worker may do alone, such as the chief writing a checkpoint.",
        json_schema_extra={"advanced": True, "unit": "seconds"},
    )


def layout(options: Options) -> Layout:
    """One process per worker."""
    shapes = (
        ProcessShape(index=index, kind=options.device_type, devices=options.devices_per_worker)
        for index in range(options.workers)
    )
    return Layout(processes=tuple(shapes))


def check(options: Options) -> list[Problem]:
    """NCCL and several devices in a worker are for GPUs only; one worker has nobody to wait for."""
    problems = []
    if options.workers == 1 and options.timeout_seconds is not None:
        message, remedy = "is for waiting for other workers, and there is 1", "Leave it empty, or ask for 2 workers"
        problems.append(Problem("timeout_seconds", message, options.timeout_seconds, remedy))
    if options.device_type != "cpu":
        return problems
    if options.communication == "nccl":
        problems.append(Problem("communication", "needs GPUs, and device_type is cpu", "nccl", "Use ring or auto"))
    if options.devices_per_worker > 1:
        message, remedy = "must be 1 on CPUs", "Ask for more workers instead"
        problems.append(Problem("devices_per_worker", message, options.devices_per_worker, remedy))
    return problems


def create(options: Options, place: Place) -> Any:
    """A tf.distribute.MultiWorkerMirroredStrategy; waits until all workers are there. Raises DeviceError."""
    import tensorflow as tf

    if place.process.kind != "gpu":
        if options.communication == "nccl":
            raise DeviceError("NCCL needs GPUs, and this job was placed on CPUs; set communication to ring or auto.")
        if options.devices_per_worker > 1:
            raise DeviceError(
                "A worker on CPUs holds one replica; set devices_per_worker to 1 and ask for more workers."
            )
    implementation = getattr(tf.distribute.experimental.CommunicationImplementation, options.communication.upper())
    communication = tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=options.bytes_per_pack, implementation=implementation
    )
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication)
