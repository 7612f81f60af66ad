"""Gives TensorFlow exactly the devices of this process's place, before it touches any."""

from __future__ import annotations

import os

from workers.contract.assignment import Place
from workers.contract.layout import ProcessAssignment

MEMORY_FOR_SPLITS = 0.9


class DeviceError(Exception):
    """The place cannot be honoured on this machine; the message is one sentence that ends with what to do."""


def logical_devices(process: ProcessAssignment) -> list[str]:
    """TensorFlow's names of the devices that hold this process's replicas, in their order."""
    return [f"{process.kind.upper()}:{index}" for index in range(len(process.devices) * process.split)]


def configure(place: Place) -> None:
    """Must run before any other TensorFlow call. Raises DeviceError when the devices are not there."""
    process = place.process
    if process.kind == "gpu":
        _configure_gpus(process)
    elif process.kind == "cpu":
        neighbours = sum(other.host == process.host for other in place.processes)
        _configure_cpu(process, max(1, cores() // neighbours))


def _configure_cpu(process: ProcessAssignment, threads: int) -> None:
    import tensorflow as tf

    if threads < cores() and "TF_NUM_INTRAOP_THREADS" not in os.environ:
        # Processes that each take every core wait for one another in every sum of gradients.
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.set_visible_devices([], "GPU")
    count = max(1, len(process.devices) * process.split)
    if count > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)


def _configure_gpus(process: ProcessAssignment) -> None:
    import tensorflow as tf

    found = tf.config.list_physical_devices("GPU")
    if len(found) < len(process.devices):
        raise DeviceError(
            f"{process.name} was given {len(process.devices)} GPUs and TensorFlow sees {len(found)}; "
            "check the driver and that the GPU build of TensorFlow is installed on this host."
        )
    for gpu, index in zip(found, process.devices, strict=False):
        if process.split == 1:
            tf.config.experimental.set_memory_growth(gpu, True)
            continue
        part = tf.config.LogicalDeviceConfiguration(memory_limit=_megabytes(index) // process.split)
        tf.config.set_logical_device_configuration(gpu, [part] * process.split)


def _megabytes(index: int) -> int:
    """Memory of a GPU that splits may share. Raises DeviceError."""
    import pynvml

    try:
        pynvml.nvmlInit()
        total = int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(index)).total)
    except pynvml.NVMLError as error:
        raise DeviceError(f"The memory of GPU {index} cannot be read ({error}); set split to 1.") from error
    return int(total * MEMORY_FOR_SPLITS) // 2**20


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0))
