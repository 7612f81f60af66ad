"""NumPy arrays in one file, read without ever unpickling."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from workers.contract.data import DatasetInfo
from workers.contract.files.facts import Facts, Feature, labels_of, refuse
from workers.contract.files.npz import inspect_npz
from workers.training.arrays import Arrays, DataError
from workers.training.datasets._files import FileOptions, facts_of, paths_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

title = "NPZ"
summary = "NumPy arrays: one of features, one of targets, and perhaps two more for the test. Loaded whole."
by_hand = True

PAIRS = (("x_train", "y_train"), ("x", "y"), ("features", "targets"), ("features", "labels"), ("images", "labels"))
TESTS = {"x_train": "x_test", "y_train": "y_test"}


class Options(FileOptions):
    """Which array is what."""

    in_memory: Literal["auto", "always"] = Field(
        "auto", title="In memory", description="Always; a packed file cannot be read in parts."
    )
    features: str | None = Field(
        None, min_length=1, max_length=200, title="Features", description="Empty for x_train, x, features or images."
    )
    target: str | None = Field(
        None, min_length=1, max_length=200, title="Target", description="Empty for y_train, y, targets or labels."
    )
    task: Literal["auto", "classification", "regression"] = Field(
        "auto", title="Task", description="Auto: classification when the targets are whole numbers, one for each row."
    )


def inspect(path: Path, options: Options) -> Facts:
    """What the file holds. Raises SpecInvalid."""
    return inspect_npz(path)


def describe(options: Options) -> DatasetInfo:
    """As the arrays' headers say. Raises SpecInvalid."""
    features, target = _chosen(options)
    if features.name == target.name:
        refuse("target", "is what the model is shown", target.name, "Choose another array")
    test = _test(options, features, target)
    regression = options.task == "regression" or (options.task == "auto" and target.low is None)
    if regression and len(target.shape) > 2:
        refuse("target", f"has the shape {target.shape}", target.name, "Use rows of numbers")
    return DatasetInfo(
        task="regression" if regression else "classification",
        shape=features.shape[1:] or (1,),
        classes=None if regression else labels_of(target, "target"),
        targets=target.shape[1] if regression and len(target.shape) > 1 else 1,
        samples=features.shape[0],
        test_samples=test[0].shape[0] if test else 0,
        bytes_per_value=1 if features.type == "byte" else 4,
    )


def load(options: Options, home: Path) -> Arrays:
    """Bytes stay bytes and are scaled by 1/255; all other features become float32. Raises DataError."""
    import numpy as np

    [file] = paths_of(options)
    features, target = _chosen(options)
    names = [features.name, target.name, *(each.name for each in _test(options, features, target) or ())]
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = [archive[name] for name in names]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{file} cannot be read as NPZ ({error}); write it again with numpy.savez.") from error
    classes = describe(options).classes
    test_features, test_targets = (_features(arrays[2]), _targets(arrays[3], classes)) if arrays[2:] else (None, None)
    return Arrays(
        _features(arrays[0]),
        _targets(arrays[1], classes),
        test_features,
        test_targets,
        scale=1 / 255 if features.type == "byte" else 1.0,
    )


def _features(values: NDArray[Any]) -> NDArray[Any]:
    values = values[:, None] if values.ndim == 1 else values
    return values if values.dtype.name == "uint8" else values.astype("float32")


def _targets(values: NDArray[Any], classes: int | None) -> NDArray[Any]:
    if classes is not None:
        return values.astype("int32")
    return values.reshape(len(values), -1).astype("float32")


def _chosen(options: Options) -> tuple[Feature, Feature]:
    """The arrays of features and of targets, of one length."""
    facts = facts_of(options)
    names = {feature.name for feature in facts.features}
    pair = next((pair for pair in PAIRS if set(pair) <= names), (None, None))
    chosen = options.features or pair[0], options.target or pair[1]
    if chosen[0] is None or chosen[1] is None:
        field = "features" if chosen[0] is None else "target"
        refuse(field, "is required", None, f"Name one of the file's arrays: {', '.join(sorted(names))}")
    features, target = facts.feature(chosen[0], "features"), facts.feature(chosen[1], "target")
    if not features.shape or not target.shape or features.shape[0] != target.shape[0] or not features.shape[0]:
        message = f"has the shape {target.shape}, and {features.name} has {features.shape}"
        refuse("target", message, target.name, "Choose arrays with as many rows")
    return features, target


def _test(options: Options, features: Feature, target: Feature) -> tuple[Feature, Feature] | None:
    """x_test and y_test where they fit x_train and y_train."""
    names = {feature.name for feature in facts_of(options).features}
    wanted = TESTS.get(features.name), TESTS.get(target.name)
    if wanted[0] is None or wanted[1] is None or not names >= set(wanted):
        return None
    found = tuple(facts_of(options).feature(str(name), "features") for name in wanted)
    fits = found[0].shape[1:] == features.shape[1:] and found[1].shape[1:] == target.shape[1:]
    fits = fits and found[0].type == features.type and found[0].shape[:1] == found[1].shape[:1] != (0,)
    fits = fits and (target.high is None or ((found[1].low or 0) >= 0 and (found[1].high or 0) <= target.high))
    return (found[0], found[1]) if fits else None
