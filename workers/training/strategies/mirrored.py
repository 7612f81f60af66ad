"""Synchronous replicas on the devices of one host, in one process."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.layout import Layout, ProcessShape
from workers.contract.problems import Problem
from workers.training.devices import DeviceError, logical_devices

title = "Mirrored"
summary = "One process, a replica on each device of one host; gradients are summed over all of them at every step."

MAX_DEVICES = 64


class Options(_Options):
    """How many devices or which, and how they sum gradients."""

    devices: int | tuple[int, ...] = Field(
        2, title="Devices", description="How many devices, or a list of their indexes such as [0, 2]."
    )
    device_type: Literal["auto", "cpu", "gpu"] = Field(
        "auto", title="Device type", description="Auto takes GPUs where there are enough, else CPUs."
    )
    split: int = Field(
        1,
        ge=1,
        le=16,
        title="Split",
        description="Logical devices made of each device; every one holds a replica.",
        json_schema_extra={"advanced": True},
    )
    cross_device_ops: Literal["auto", "nccl", "hierarchical_copy", "reduction_to_one_device"] = Field(
        "auto", title="Cross-device ops", description="How gradients are summed over the devices. NCCL needs GPUs."
    )
    bytes_per_pack: int = Field(
        32 * 2**20,
        ge=1024,
        le=2**31 - 1,
        title="Bytes per pack",
        description="Gradients travel together in messages of at most so many bytes; a larger one travels alone.",
        json_schema_extra={"advanced": True, "unit": "bytes"},
    )

    @field_validator("devices", mode="before")
    @classmethod
    def _count_or_indexes(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if 1 <= value <= MAX_DEVICES:
                return value
            raise ValueError(f"must be between 1 and {MAX_DEVICES} when it is a number")
        if not isinstance(value, list | tuple) or not value:
            raise ValueError("must be a number of devices or a list of their indexes such as [0, 2]")
        if any(isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < 1024 for item in value):
            raise ValueError("must hold indexes between 0 and 1023 when it is a list")
        if len(set(value)) != len(value):
            raise ValueError("must not name an index twice")
        if len(value) > MAX_DEVICES:
            raise ValueError(f"must name at most {MAX_DEVICES} devices")
        return tuple(value)


def layout(options: Options) -> Layout:
    """One process with all devices."""
    indexes = () if isinstance(options.devices, int) else options.devices
    count = options.devices if isinstance(options.devices, int) else len(options.devices)
    shape = ProcessShape(kind=options.device_type, devices=count, indexes=indexes, split=options.split)
    return Layout(processes=(shape,))


def check(options: Options) -> list[Problem]:
    """NCCL moves data between GPUs only, and talks to each of them once; a hierarchy needs two halves."""
    if options.cross_device_ops == "hierarchical_copy":
        return _hierarchy_problems(layout(options).replicas)
    if options.cross_device_ops != "nccl":
        return []
    if options.device_type == "cpu":
        return [Problem("cross_device_ops", "needs GPUs, and device_type is cpu", "nccl", "Use auto")]
    if options.split > 1:
        return [Problem("cross_device_ops", "cannot work on parts of a split GPU", "nccl", "Use auto, or split 1")]
    return []


def _hierarchy_problems(replicas: int) -> list[Problem]:
    """TensorFlow sums over two groups of `replicas // 2`: with an odd number it leaves one replica out, silently."""
    if replicas % 2 == 0:
        return []
    message = f"sums over two equal groups of replicas, and there {'is' if replicas == 1 else 'are'} {replicas}"
    nearest = "2 devices" if replicas == 1 else f"{replicas - 1} or {replicas + 1} devices"
    remedy = f"Use auto or reduction_to_one_device, or {nearest}"
    return [Problem("cross_device_ops", message, "hierarchical_copy", remedy)]


def create(options: Options, place: Place) -> Any:
    """A tf.distribute.MirroredStrategy. Raises DeviceError."""
    import tensorflow as tf

    if options.cross_device_ops == "nccl" and place.process.kind != "gpu":
        raise DeviceError("NCCL needs GPUs, and this job was placed on CPUs; set cross_device_ops to auto.")
    operations = {
        "auto": lambda: None,
        "nccl": tf.distribute.NcclAllReduce,
        "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
        "reduction_to_one_device": tf.distribute.ReductionToOneDevice,
    }
    chosen = operations[options.cross_device_ops]()
    return tf.distribute.MirroredStrategy(logical_devices(place.process), cross_device_ops=chosen)
