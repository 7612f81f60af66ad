"""Going on from a checkpoint: whether it fits a job, where in the job it stands, and which one people mean."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.contract import catalog
from workers.contract.kinds import fitting
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import JobSpec
from workers.training.checkpointing import checkpoints
from workers.training.checkpointing.checkpoints import CheckpointError, Manifest
from workers.training.checkpointing.state import ITERATION, MODEL

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPTION = "--resume"
KINDS: tuple[catalog.Kind, ...] = ("model", "dataset")


def step_in(spec: JobSpec, manifest: Manifest) -> int:
    """Steps of `spec` that are done: as many as the examples seen are enough for.

    Where its steps are of another size (another batch, asynchronous workers), up to one step's examples are seen again.
    """
    return manifest.samples_seen // spec.samples_per_step


def misfit(spec: JobSpec, manifest: Manifest) -> str:
    """Why a job cannot go on from a checkpoint, as the end of a sentence about it; empty when nothing is known.

    Needs no TensorFlow, so it cannot see each weight: `unfit` does.
    """
    was = manifest.spec
    for kind in KINDS if spec.kind == "train" else KINDS[:1]:
        before, now = getattr(was, kind).name, getattr(spec, kind).name
        if before != now:
            return f"is of the {kind} {before}, and the job has {now}"
    if spec.kind != "train":
        return _misfit_of_data(was, spec) or _misfit_of_weights(spec, manifest)
    before, now = was.training.optimizer.name, spec.training.optimizer.name
    if before != now:
        return f"was trained by {before}, and the job has {now}"
    difference = _difference(was, spec, "dataset")
    if difference:
        return f"is of {spec.dataset.name} with other options ({difference})"
    fault = _misfit_of_weights(spec, manifest)
    step = step_in(spec, manifest)
    if not fault and step >= spec.total_steps:
        return f"is at step {step:,} of a job of {spec.total_steps:,}: raise training.steps or epochs to go on"
    return fault


def _misfit_of_weights(spec: JobSpec, manifest: Manifest) -> str:
    kept, wanted = _parameters(manifest), _wanted_parameters(spec)
    if not wanted or kept == wanted:  # 0 for a file that nobody has looked at
        return ""
    difference = _difference(manifest.spec, spec, "model") or "the data is of another shape"
    return f"holds {kept:,} parameters and the model has {wanted:,} ({difference})"


def _misfit_of_data(was: JobSpec, spec: JobSpec) -> str:
    """Weights may be tried on other data than they were trained on, if it is of the same kind."""
    try:
        before, now = fitting(was), fitting(spec)
    except SpecInvalid:  # an earlier version's options; the weights' shapes then have the last word
        return ""
    return "" if before == now else f"was trained on {before}, and the job's data is {now}"


def unfit(wanted: Mapping[str, tuple[int, ...]], arrays: Mapping[str, NDArray[Any]]) -> str:
    """The first array that does not fit the state's shapes by name, as `misfit` says it."""
    missing = [name for name in wanted if name.startswith(MODEL) and name not in arrays]
    if missing:
        return f"lacks {missing[0]}, which the model has"
    strange = [name for name in arrays if name.startswith(MODEL) and name not in wanted]
    if strange:
        return f"holds {strange[0]}, which the model has not"
    for name, shape in wanted.items():
        if name in arrays and arrays[name].shape != shape:
            return f"does not fit: {name} is {shape} in the job and {arrays[name].shape} in the checkpoint"
    return ""


def check(spec: JobSpec, checkpoint: Path) -> Manifest:
    """The manifest of a whole checkpoint that `spec` can go on from. Raises CheckpointError."""
    manifest = checkpoints.validate(checkpoint)
    fault = misfit(spec, manifest)
    if fault:
        raise CheckpointError(f"{checkpoint} {fault}.")
    return manifest


def arrays_for(
    spec: JobSpec, checkpoint: Path, manifest: Manifest, wanted: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[Any]]:
    """The checkpoint's arrays as `spec` goes on from them. Raises CheckpointError when one does not fit."""
    import numpy as np

    arrays = _fitting_arrays(checkpoint, wanted)
    step = step_in(spec, manifest)
    if step != manifest.step:
        # Steps of another size: warm-up goes by their number.
        counts = [name for name in arrays if name.startswith(ITERATION)]
        arrays |= {name: np.asarray(step, arrays[name].dtype) for name in counts}
    return arrays


def weights_for(checkpoint: Path, wanted: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """The model's weights alone, whatever else there is. Raises CheckpointError when one does not fit."""
    shapes = {name: shape for name, shape in wanted.items() if name.startswith(MODEL)}
    arrays = _fitting_arrays(checkpoint, shapes)
    return {name: array for name, array in arrays.items() if name in shapes}


def _fitting_arrays(checkpoint: Path, wanted: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    arrays = checkpoints.read_arrays(checkpoint)
    fault = unfit(wanted, arrays)
    if fault:
        raise CheckpointError(f"{checkpoint} {fault}; choose the model's options as they were.")
    return arrays


def choose(given: Path, spec: JobSpec) -> Path:
    """The checkpoint that `--resume` means: `given`, or the newest that fits below it when it is a run folder.

    Raises SpecInvalid, which offers the newest one beside it that would do.
    """
    given = given.expanduser().absolute()
    runs = given / checkpoints.FOLDER
    if runs.is_dir() and not (given / checkpoints.MANIFEST).exists():
        return _newest_of(runs, given, spec)
    try:
        check(spec, given)
    except CheckpointError as error:
        other = _newest_fitting(given.parent, spec)
        remedy = f"Use {OPTION} {other}" if other is not None else "No other one beside it will do"
        raise SpecInvalid([Problem(OPTION, str(error).removesuffix("."), None, remedy)]) from None
    return given


def _newest_of(folder: Path, given: Path, spec: JobSpec) -> Path:
    passed = []
    for path in checkpoints.among(folder):
        try:
            check(spec, path)
        except CheckpointError as error:
            passed.append(str(error))
        else:
            for fault in passed:
                print(f"passed over: {fault}", file=sys.stderr)  # noqa: T201
            return path
    message = f"finds nothing to go on from below {folder}" + (f": {passed[0].removesuffix('.')}" if passed else "")
    raise SpecInvalid([Problem(OPTION, message, None, "Give a checkpoint, or a run folder that holds one")])


def _newest_fitting(folder: Path, spec: JobSpec) -> Path | None:
    return checkpoints.newest(folder, lambda manifest: not misfit(spec, manifest))


def _difference(was: JobSpec, spec: JobSpec, kind: catalog.Kind) -> str:
    """The options that are others now, with today's defaults where the earlier job left them open.

    Of a file only its name counts: the library names files by their content, and hosts keep them in different folders.
    """
    now = spec.options_of(kind).model_dump(mode="json")
    try:
        before = was.options_of(kind).model_dump(mode="json")
    except SpecInvalid:
        before = getattr(was, kind).options
    same = {name for name in now if before.get(name) == now[name]}
    if now.get("file") and before.get("file") and Path(now["file"]).name == Path(before["file"]).name:
        same.add("file")
    changed = (name for name in now if name not in same)
    return ", ".join(f"{name} was {before.get(name)}, is {now[name]}" for name in changed)


def _parameters(manifest: Manifest) -> int:
    shapes = [info.shape for name, info in manifest.arrays.items() if name.startswith(MODEL)]
    return sum(math.prod(shape) for shape in shapes)


def _wanted_parameters(spec: JobSpec) -> int:
    info, module = spec.dataset_info, catalog.find("model", spec.model.name).module
    return int(module.count_parameters(info, spec.options_of("model")))
