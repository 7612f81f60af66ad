"""A model of your own from a `.keras` file: from the library, or by hand from a path on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from workers.contract import keras_file
from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.contract.library import ModelFacts
from workers.contract.problems import Problem, SpecInvalid
from workers.training.checkpointing.initial_model import ModelFileError

title = "Keras file"
summary = "A model of your own that model.save() wrote. Its architecture is trained, from its weights or from new ones."

PROBABILITIES = {"softmax", "sigmoid"}


class Options(_Options):
    """Which file, and whether its weights are used."""

    file: str | None = Field(
        None,
        min_length=1,
        max_length=4096,
        title="File",
        description="`library:<version>@<sha256>`; for runs by hand the path of a .keras file.",
    )
    facts: ModelFacts | None = Field(
        None,
        title="Facts",
        description="What was found when the file was looked at; filled in by the library.",
        json_schema_extra={"advanced": True},
    )
    weights: Literal["file", "new"] = Field(
        "file", title="Weights", description="Start from those in the file, or from new ones by the seed."
    )


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """The data must be of the shape that the model was built for, and its width that of the labels."""
    if options.file is None:
        return [Problem("options.file", "is required", None, "Upload a .keras file to the library, and choose it")]
    facts = options.facts
    if facts is None:
        return []
    shape = "x".join(map(str, info.shape))
    taken = "x".join("any" if size is None else str(size) for size in facts.inputs)
    if not _takes(facts.inputs, info.shape):
        return [Problem("name", f"takes examples of {taken}, and the data is {shape}", None, "Choose other data")]
    if facts.outputs != info.outputs:
        what = f"{info.classes} classes" if info.classes else f"{info.targets} targets"
        return [Problem("name", f"has {facts.outputs} outputs, and the data has {what}", None, "Choose other data")]
    return []


def build_model(info: DatasetInfo, options: Options) -> Any:
    """The file's model from [batch, *shape] to [batch, outputs] logits: a softmax or sigmoid at its end is taken off.

    Raises ModelFileError.
    """
    import keras

    path = Path(options.file or "")
    try:
        keras_file.check(path)
        model = keras.models.load_model(path, compile=False, safe_mode=True)
        if options.weights == "new":
            model = type(model).from_config(model.get_config())
    except SpecInvalid as error:
        raise ModelFileError(f"model.options.file {path}: {error}") from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ImportError, RuntimeError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelFileError(f"model.options.file {path} cannot be loaded ({said[0][:200]}).") from error
    model = _without_probabilities(model)
    given, made = tuple(model.inputs[0].shape[1:]), tuple(model.outputs[0].shape[1:])
    if len(model.inputs) != 1 or len(model.outputs) != 1 or not _takes(given, info.shape) or made != (info.outputs,):
        message = f"goes from {given} to {made}, and the data from {info.shape} to {info.outputs}; choose other data."
        raise ModelFileError(f"model.options.file {path} {message}")
    return model


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """All weights of the file's model; 0 for a file that nobody has looked at."""
    return options.facts.parameters if options.facts is not None else 0


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """Those that were found when the file was looked at."""
    return options.facts.kernels if options.facts is not None else {}


def _takes(shape: tuple[int | None, ...], inputs: tuple[int, ...]) -> bool:
    return len(shape) == len(inputs) and all(a in (None, b) for a, b in zip(shape, inputs, strict=True))


def _without_probabilities(model: Any) -> Any:
    """The losses here take logits, which are more exact than the logarithm of a probability."""
    import keras

    last = model.layers[-1]
    if isinstance(last, keras.layers.Softmax):
        return keras.Model(model.inputs, last.input, name=model.name)
    activation = getattr(last, "activation", None)
    if getattr(activation, "__name__", "") in PROBABILITIES:
        last.activation = keras.activations.linear
    return model
