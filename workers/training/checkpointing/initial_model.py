"""Weights to start from: a .keras file that is looked at before anything starts, and fits the model or is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import JobSpec

FIELD = "training.initial_model"
PARTS = ("config.json", "model.weights.h5")


class ModelFileError(Exception):
    """The file cannot be started from; the message is one sentence that names it and ends with what to do."""


def resolve(spec: JobSpec) -> JobSpec:
    """The spec with the file's whole path; unchanged without one. Raises SpecInvalid when it is missing or torn."""
    given = spec.training.initial_model
    if given is None:
        return spec
    path = Path(given).expanduser().absolute()
    fault, remedy = _fault(path)
    if fault:
        raise SpecInvalid([Problem(FIELD, fault, given, remedy)])
    return spec.model_copy(update={"training": spec.training.model_copy(update={"initial_model": str(path)})})


def _fault(path: Path) -> tuple[str, str]:
    """What is wrong and what would help, both empty for a whole file. Reads all of it, without TensorFlow."""
    try:
        with zipfile.ZipFile(path) as archive:
            missing = sorted(set(PARTS) - set(archive.namelist()))
            if missing:
                return f"is not a .keras model: it holds no {missing[0]}", "Give a file that model.save() wrote"
            torn = archive.testzip()
    except FileNotFoundError:
        return "is not there", "Give the path of a .keras file on this host"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}", "Give the path of a .keras file on this host"
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError):
        return "is torn or not a .keras file", "Save the model again"
    return (f"is torn in {torn}", "Save the model again") if torn else ("", "")


def read(file: str) -> list[Any]:
    """The weights of `file` as arrays, in the order of its layers. Raises ModelFileError.

    To be called before anything is seeded or built, and outside of any strategy's scope.
    """
    import keras

    try:
        values: list[Any] = keras.models.load_model(file, compile=False, safe_mode=True).get_weights()
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ImportError, RuntimeError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelFileError(f"{FIELD} {file} cannot be loaded ({said[0][:200]}); save the model again.") from error
    # The names of the layers to come count from the start again.
    keras.utils.clear_session()
    return values


def assign(model: Any, values: list[Any], file: str) -> None:
    """Give `model` the weights of `file`, in their order. Raises ModelFileError unless each shape fits."""
    wanted = [(weight.path, tuple(weight.shape)) for weight in model.weights]
    if len(values) != len(wanted):
        raise ModelFileError(
            f"{FIELD} {file} holds {len(values)} weights and the model has {len(wanted)}; choose the model it is of."
        )
    for (path, shape), value in zip(wanted, values, strict=True):
        if value.shape != shape:
            raise ModelFileError(
                f"{FIELD} {file} does not fit: {path} is {shape} in the model and {value.shape} in the file; "
                "choose the model's options as they were when it was saved."
            )
    for weight, value in zip(model.weights, values, strict=True):
        weight.assign(value)
