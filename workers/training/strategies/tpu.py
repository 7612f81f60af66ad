"""Synchronous replicas on the cores of a TPU, or of all TPUs of a pod slice, in one process on one of its hosts.

The process drives a slice by its name: the runtime of each host computes, so none may load the library of its own TPU
(https://cloud.google.com/tpu/docs/tensorflow-pods).
"""

from __future__ import annotations

import os
import socket
from typing import Any

from pydantic import Field

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.layout import Layout, ProcessShape
from workers.contract.problems import Problem
from workers.training.devices import DeviceError

LOCAL = "local"
SLICE_CORES = "LOCKSTEP_TPU_CORES"
"""A setting of hosts (workers/host/settings.py)."""
REACH_SECONDS = 10.0

title = "TPU"
summary = "One process on a TPU host, a replica on each core; gradients are summed over all of them at every step."


class Options(_Options):
    """Which TPU, and how many cores it has."""

    address: str = Field(
        LOCAL,
        pattern=r"^[\w.:/-]{1,200}$",
        title="Address",
        description="local on a TPU VM; else the name or the grpc:// address of the TPU or the pod slice.",
    )
    cores: int = Field(
        8,
        ge=1,
        le=4096,
        title="Cores",
        description="Cores of the TPU, or of the whole slice, all of which are used: a replica on each.",
    )


def layout(options: Options) -> Layout:
    """One process with all cores."""
    return Layout(processes=(ProcessShape(kind="tpu", devices=options.cores),))


def environment(options: Options) -> dict[str, str]:
    """What TensorFlow has to find when it is imported."""
    return {} if options.address == LOCAL else {"TPU_LOAD_LIBRARY": "0"}


def check_here(options: Options) -> list[Problem]:
    """What stands against it on this host: one of a slice has no TPU for itself."""
    if options.address != LOCAL or not os.environ.get(SLICE_CORES):
        return []
    message = "is the TPU of one host, and this one is part of a pod slice"
    return [Problem("address", message, LOCAL, "Give the name of the slice")]


def create(options: Options, place: Place) -> Any:
    """A tf.distribute.TPUStrategy on a TPU that was initialized. Raises DeviceError where there is none."""
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=options.address)
        if options.address != LOCAL:
            _reach(resolver)
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


def _reach(resolver: Any) -> None:
    """Raises OSError when a host of the TPU does not listen: TensorFlow would wait for it without a word."""
    for address in (each for tasks in resolver.cluster_spec().as_dict().values() for each in tasks):
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
