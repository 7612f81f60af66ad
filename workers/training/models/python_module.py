"""A model of your own from a Python file that defines `build_model(inputs, outputs, options)`.

The file is run on the training host with the rights of the training process: from the library only members with the
right to run code may use it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.contract.library import ModelFacts
from workers.contract.problems import Problem
from workers.training.checkpointing.initial_model import ModelFileError

title = "Python module"
summary = "A model of your own: a .py file with build_model(inputs, outputs, options) that returns a keras.Model."


class Options(_Options):
    """Which file, and what it is told."""

    file: str | None = Field(
        None,
        min_length=1,
        max_length=4096,
        title="File",
        description="`library:<version>@<sha256>`; for runs by hand the path of a .py file.",
    )
    facts: ModelFacts | None = Field(
        None,
        title="Facts",
        description="What was found when the file was looked at; filled in by the library.",
        json_schema_extra={"advanced": True},
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        max_length=100,
        title="Options",
        description="What build_model is given as its `options`, as JSON.",
    )


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """A file is needed; whether it fits the data only it can say."""
    if options.file is None:
        return [Problem("options.file", "is required", None, "Upload a Python module to the library, and choose it")]
    return []


def build_model(info: DatasetInfo, options: Options) -> Any:
    """What the file's build_model(inputs, outputs, options) returns, from [batch, *inputs] to [batch, outputs] logits.

    `inputs` is one example's shape without the batch, a tuple of integers; `outputs` the number of classes, or of
    targets; `options` a dictionary of JSON values. Raises ModelFileError, and what the file raises.
    """
    import keras

    path = Path(options.file or "")
    spec = importlib.util.spec_from_file_location("uploaded_model", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ModelFileError(f"model.options.file {path} is not a Python file that is there; give the path of one.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["uploaded_model"] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "build_model", None)):
        raise ModelFileError(f"{path.name} defines no build_model; add def build_model(inputs, outputs, options).")
    model = module.build_model(tuple(info.shape), info.outputs, dict(options.options))
    if not isinstance(model, keras.Model):
        raise ModelFileError(f"build_model of {path.name} returned a {type(model).__name__}; return a keras.Model.")
    if len(model.outputs) != 1 or tuple(model.outputs[0].shape[1:]) != (info.outputs,):
        made = [tuple(one.shape[1:]) for one in model.outputs]
        raise ModelFileError(f"build_model of {path.name} was asked for {info.outputs} outputs and made {made}.")
    return model


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """Those of the model that was built when the file was looked at; 0 for a file that nobody has looked at."""
    return options.facts.parameters if options.facts is not None else 0
