"""One model over several devices: a DTensor mesh, its columns split the weights and its rows the batch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.base import Strict
from workers.contract.layout import Layout, ProcessShape
from workers.contract.obstacles import Obstacle, hindrance, not_divided
from workers.contract.problems import Problem
from workers.contract.spec import Training
from workers.training.devices import logical_devices

if TYPE_CHECKING:
    from workers.training.mesh.meshed import Meshed

title = "Model parallel"
summary = (
    "The weights and optimizer slots of one model split over devices (DTensor), of one process or several, so that it "
    "may be larger than one of them; more such rows of devices share the global batch."
)

MOST = 64
one_loss_only = True
"""Its step has one optimizer."""
on_mesh = True
"""Not every operation of TensorFlow has a layout there; models say which kinds of job they cannot do."""


class Mesh(Strict):
    """Devices in rows and columns, batch x model of them."""

    batch: int = Field(
        1, ge=1, le=MOST, title="Mesh: batch", description="Rows: copies of the model, which share the global batch."
    )
    model: int = Field(
        2,
        ge=1,
        le=MOST,
        title="Mesh: model",
        description="Columns: devices over which each copy is split.",
    )


class Options(_Options):
    """The shape of the mesh, and of which devices it is made."""

    mesh: Mesh = Field(
        default_factory=Mesh,
        title="Device mesh",
        description="`batch` (default 1) rows of `model` (default 2) devices each; a row holds one copy of the model.",
    )
    device_type: Literal["auto", "cpu", "gpu"] = Field(
        "auto", title="Device type", description="Auto takes GPUs where there are enough, else CPUs."
    )
    processes: int = Field(
        1,
        ge=1,
        le=256,
        title="Processes",
        description="Which share the devices of the mesh equally, in whole rows or equal parts of one; each may run on "
        "another host.",
    )


def layout(options: Options) -> Layout:
    """As many devices for each process, row by row; a replica on each row, numbered where the row begins."""
    mesh = options.mesh
    devices = max(1, mesh.batch * mesh.model // options.processes)
    shapes = (
        ProcessShape(
            index=index,
            kind=options.device_type,
            devices=devices,
            shards=mesh.model,
            follows=index * devices % mesh.model > 0,
        )
        for index in range(options.processes)
    )
    return Layout(processes=tuple(shapes))


def check(options: Options) -> list[Problem]:
    """Processes have equal shares of rows, or rows of processes, and a host has no more devices than this."""
    mesh = options.mesh
    if not _shared(mesh, options.processes):
        message = f"cannot share {mesh.batch} x {mesh.model} devices in whole rows or equal parts of one"
        fits = [one for one in range(1, mesh.batch * mesh.model + 1) if _shared(mesh, one)]
        return [
            Problem("processes", message, options.processes, f"Nearest that can: {_around(options.processes, fits)}")
        ]
    devices = mesh.batch * mesh.model // options.processes
    if devices <= MOST:
        return []
    if options.processes == 1:
        message = f"makes a mesh of {devices} devices, and one host has at most {MOST}"
    else:
        message = f"makes a mesh of {devices} devices in each process, and one host has at most {MOST}"
    remedy = f"Use at most {MOST * options.processes // mesh.model} rows of {mesh.model}, or more processes"
    return [Problem("mesh.batch", message, mesh.batch, remedy)]


def check_kernels(options: Options, kernels: Mapping[str, tuple[int, ...]]) -> list[Problem]:
    """Each kernel needs an axis that the mesh's columns divide; `kernels` are the axes that may be split, by name."""
    columns = options.mesh.model
    for name, sizes in kernels.items():
        if not _divides(columns, sizes):
            message = f"cannot split the weights of {name}: {not_divided(sizes, columns)}"
            return [Problem("mesh.model", message, columns, f"Nearest that can: {_nearest(columns, kernels)}")]
    return []


def check_obstacles(obstacles: Iterable[Obstacle], *, training: bool) -> list[Problem]:
    """Layers that no mesh of whatever shape can hold; see also workers/training/mesh/layouts.py."""
    found = hindrance(obstacles, training=training)
    return [] if found is None else [Problem("name", found[0], "model_parallel", found[1])]


def check_training(options: Options, training: Training) -> list[Problem]:
    """What DTensor cannot compile, and batches that processes would not agree on."""
    problems = []
    if training.jit:
        message = "cannot compile a step whose weights are split over a DTensor mesh"
        problems.append(Problem("jit", message, True, "Switch it off, or use another strategy"))
    if training.mixed_precision == "float16":
        message = "needs a loss scale that is decided within the step, which DTensor cannot compile"
        problems.append(Problem("mixed_precision", message, "float16", "Use bfloat16 or none"))
    if training.sharding in {"file", "off"} and options.processes > 1:
        message = "lets each worker draw examples of its own, and the processes of a mesh take every batch together"
        problems.append(Problem("sharding", message, training.sharding, "Use auto or data"))
    return problems


def create(options: Options, place: Place) -> Any:
    """A tf.experimental.dtensor.Mesh, the devices row by row; waits until all processes are there."""
    from tensorflow.experimental import dtensor

    # With it on, TensorFlow 2.21 hands the optimizer sums of one row where momentum or Adam use a gradient twice.
    os.environ["DTENSOR_ENABLE_COMBINE_ALL_REDUCES_OPTIMIZATION"] = "0"
    dimensions = [("batch", options.mesh.batch), ("model", options.mesh.model)]
    if len(place.processes) > 1:
        os.environ |= _clients(place)
        kind = place.process.kind.upper()
        dtensor.initialize_accelerator_system(kind)
        return dtensor.create_distributed_mesh(dimensions, device_type=kind)
    if place.process.kind == "gpu":
        dtensor.initialize_accelerator_system("GPU")
    return dtensor.create_mesh(dimensions, devices=logical_devices(place.process))


def Adapter(mesh: Any, place: Place) -> Meshed:
    """Works on the mesh. Not the class itself, whose module needs what only training hosts have."""
    from workers.training.mesh.meshed import Meshed

    return Meshed(mesh, place)


def _clients(place: Place) -> dict[str, str]:
    """What DTensor reads of the cluster, in its place of TF_CONFIG: tensorflow/dtensor/python/config.py."""
    return {
        "DTENSOR_JOB_NAME": "worker",
        "DTENSOR_JOBS": ",".join(f"{process.address}:{process.port}" for process in place.processes),
        "DTENSOR_CLIENT_ID": str([process.name for process in place.processes].index(place.process.name)),
        "DTENSOR_NUM_CLIENTS": str(len(place.processes)),
    }


def _shared(mesh: Mesh, processes: int) -> bool:
    """Whether each process has the same number of whole rows, or each row the same number of whole processes."""
    return mesh.batch % processes == 0 or (processes % mesh.batch == 0 and mesh.model % (processes // mesh.batch) == 0)


def _divides(columns: int, sizes: tuple[int, ...]) -> bool:
    return any(size % columns == 0 for size in sizes)


def _nearest(columns: int, kernels: Mapping[str, tuple[int, ...]]) -> str:
    """The next smaller and the next larger number of columns that divide every kernel; 1 always does."""
    fits = [one for one in range(1, MOST + 1) if all(_divides(one, sizes) for sizes in kernels.values())]
    return _around(columns, fits)


def _around(number: int, fits: list[int]) -> str:
    """The ones of `fits`, in order and from 1 on, right below and above `number`."""
    near = [max(one for one in fits if one < number), *[one for one in fits if one > number][:1]]
    return " or ".join(map(str, near))
