"""Synchronous replicas on the cores of a TPU, in one process on its host."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.layout import Layout, ProcessShape
from workers.training.devices import DeviceError

title = "TPU"
summary = "One process on a TPU host, a replica on each core; gradients are summed over all of them at every step."


class Options(_Options):
    """Which TPU, and how many cores it has."""

    address: str = Field(
        "local",
        pattern=r"^[\w.:/-]{1,200}$",
        title="Address",
        description="local on a TPU VM; else the name or the grpc:// address of the TPU.",
    )
    cores: int = Field(
        8, ge=1, le=64, title="Cores", description="Cores of the TPU, all of which are used: a replica on each."
    )


def layout(options: Options) -> Layout:
    """One process with all cores."""
    return Layout(processes=(ProcessShape(kind="tpu", devices=options.cores),))


def create(options: Options, place: Place) -> Any:
    """A tf.distribute.TPUStrategy on a TPU that was initialized. Raises DeviceError where there is none."""
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=options.address)
        if options.address != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ValueError, RuntimeError, OSError) as error:
        raise DeviceError(
            f"No TPU answers at {options.address} ({type(error).__name__}); run this on a TPU host that has "
            "tensorflow-tpu, or choose another strategy."
        ) from error
    strategy = tf.distribute.TPUStrategy(resolver)
    if strategy.num_replicas_in_sync != options.cores:
        raise DeviceError(
            f"The TPU at {options.address} has {strategy.num_replicas_in_sync} cores; set cores to that number."
        )
    return strategy
