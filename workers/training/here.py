"""Lays a job out on this machine alone: GPUs where there are enough, else as many CPU slots as asked."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from workers.contract import catalog
from workers.contract.layout import DeviceKind, ProcessAssignment, ProcessShape, assign
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import JobSpec

HOST = "localhost"


def place_here(spec: JobSpec) -> tuple[ProcessAssignment, ...]:
    """All processes of the job on this machine, ports still open. Raises SpecInvalid when it lacks the devices."""
    shapes = spec.layout.processes
    available = gpu_count()
    kind = _kind(shapes, available)
    strategy = catalog.find("strategy", spec.strategy.name).module
    if hasattr(strategy, "check_here") and (found := strategy.check_here(spec.options_of("strategy"))):
        raise SpecInvalid([problem.under("strategy.options") for problem in found])
    if kind == "gpu":
        _check_gpus(shapes, available)
    placed: list[ProcessAssignment] = []
    free, replica = 0, 0
    for shape in shapes:
        devices = shape.indexes or tuple(range(free, free + shape.devices))
        here = kind if shape.devices else "cpu"
        placed.append(assign(shape, first_replica=replica, host=HOST, address="127.0.0.1", kind=here, devices=devices))
        free += shape.devices
        replica += shape.replicas
    return tuple(placed)


def gpu_count() -> int:
    """GPUs that TensorFlow could use here; 0 where its CPU build is installed. Imports no TensorFlow."""
    if not any(_installed(name) for name in ("tensorflow", "tensorflow-intel")):
        return 0
    import pynvml

    try:
        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0


def tpu_here() -> bool:
    """Whether this machine is made to reach a TPU. Imports no TensorFlow."""
    return _installed("tensorflow-tpu") or any(Path("/dev").glob("accel[0-9]*"))


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _kind(shapes: tuple[ProcessShape, ...], gpus: int) -> DeviceKind:
    asked = {shape.kind for shape in shapes} - {"auto"}
    if "tpu" in asked:
        if not tpu_here():
            remedy = "Run it on a TPU host that has tensorflow-tpu, or choose another strategy"
            raise SpecInvalid([Problem("strategy.name", "needs a TPU, and this machine has none", "tpu", remedy)])
        return "tpu"
    if asked:
        return "gpu" if "gpu" in asked else "cpu"
    highest = max((index for shape in shapes for index in shape.indexes), default=-1)
    return "gpu" if gpus >= max(1, sum(shape.devices for shape in shapes), highest + 1) else "cpu"


def _check_gpus(shapes: tuple[ProcessShape, ...], gpus: int) -> None:
    wanted = sum(shape.devices for shape in shapes)
    missing = sorted({index for shape in shapes for index in shape.indexes if index >= gpus})
    if wanted > gpus or missing:
        what = f"asks for GPU {missing[0]}" if missing else f"asks for {wanted} GPUs"
        message = f"{what}, and TensorFlow can use {gpus} on this machine"
        raise SpecInvalid([Problem("strategy.options", message, None, "Ask for fewer, or for CPUs")])
