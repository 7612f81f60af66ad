"""Inside the throw-away process: opens a file once and answers what it is, or why it is refused.

`python -m workers.sandbox.build FILE INSPECTION`, the second a contract.library.Inspection as JSON; the answer, a
Report as JSON, goes to the pipe that LOCKSTEP_ANSWER_FD names. What the model prints goes where printing goes.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.contract import catalog, keras_file
from workers.contract.library import FORMATS, Inspection, LayerFacts, ModelFacts, Report
from workers.contract.obstacles import kernels, obstacles
from workers.contract.problems import Problem, SpecInvalid, shorten
from workers.sandbox.preview import preview_of

MAX_LAYERS = 200
HELD = "A module is tried without network, other programs, the host's files, or much disk: leave out what needs them."


class Unfit(Exception):
    """The model cannot be trained here; the message is one sentence, and what to do."""


def main(arguments: list[str]) -> int:
    """0 when something was answered, a refusal included."""
    path, order = Path(arguments[0]), Inspection.model_validate_json(arguments[1])
    with os.fdopen(int(os.environ["LOCKSTEP_ANSWER_FD"]), "wb") as answer:
        answer.write(_inspect(path, order).model_dump_json().encode())
    return 0


def _inspect(path: Path, order: Inspection) -> Report:
    try:
        if FORMATS[order.format].kind == "dataset":
            return _inspect_data(path, order.format)
        return Report(model=_facts(order, path))
    except SpecInvalid as error:
        return Report(refused=" ".join(_told(problem, path) for problem in error.problems)[:2000])
    except Unfit as error:
        return Report(refused=str(error)[:2000])
    except MemoryError:
        return Report(refused="It needs more memory than the check allows. Make it smaller.")
    except Exception as error:  # noqa: BLE001  whatever the file does is its fault, and is told in its words
        said = " ".join(str(error).split())[:600]
        held = f". {HELD}" if isinstance(error, OSError) and order.format == "python_module" else ""
        return Report(refused=f"It cannot be opened: {type(error).__name__}: {said}{held}")


def _told(problem: Problem, path: Path) -> str:
    """Without the name that the file has on this host, which tells people nothing."""
    if problem.path != "file":
        return f"{problem}."
    given = "" if problem.value in (None, path.name, str(path)) else f" ({shorten(problem.value, 200)})"
    return f"The file {problem.message}{given}. {problem.remedy}."


def _inspect_data(path: Path, format_name: str) -> Report:
    """What a file of data holds, with a glimpse of it. Raises SpecInvalid."""
    entry = catalog.find("dataset", format_name)
    # A plugin looks at all of a file; its options, some of which are required, are chosen with the job.
    facts = entry.module.inspect(path, entry.options.model_construct())
    return Report(dataset=facts, preview=preview_of(path, format_name))


def import_quietly() -> Any:
    """TensorFlow's own words at its start are of no use to whoever reads what the file printed."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import keras

        keras.ops.zeros(1)
        return keras
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _facts(order: Inspection, path: Path) -> ModelFacts:
    if order.format == "keras_file":
        return describe(load_keras(path))
    model = call_module(path, order.inputs, order.outputs, order.options)
    facts = describe(model)
    if facts.outputs != order.outputs:
        raise Unfit(f"build_model was asked for {order.outputs} outputs and the model has {facts.outputs}.")
    return facts


def load_keras(path: Path) -> Any:
    """The model of a .keras file whose parts have all been looked at. Raises SpecInvalid and what Keras raises."""
    from workers.sandbox import weights

    keras_file.check(path)
    weights.check(path)
    keras = import_quietly()
    return keras.models.load_model(path, compile=False, safe_mode=True)


def call_module(path: Path, inputs: tuple[int, ...], outputs: int, options: Mapping[str, Any]) -> Any:
    """What `build_model(inputs, outputs, options)` of the module returns. Raises Unfit and whatever it raises."""
    compile(path.read_bytes(), "the module", "exec")
    keras = import_quietly()
    spec = importlib.util.spec_from_file_location("uploaded_model", path)
    if spec is None or spec.loader is None:
        raise Unfit(f"{path.name} is not a Python file. Give a file whose name ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["uploaded_model"] = module
    spec.loader.exec_module(module)
    build_model = getattr(module, "build_model", None)
    if not callable(build_model):
        raise Unfit("The module defines no build_model. Add: def build_model(inputs, outputs, options).")
    model = build_model(tuple(inputs), outputs, dict(options))
    if not isinstance(model, keras.Model):
        raise Unfit(f"build_model returned a {type(model).__name__}. Return a keras.Model.")
    return model


def describe(model: Any) -> ModelFacts:
    """What a built model is, tried on one example. Raises Unfit for one that Lockstep cannot train."""
    import numpy as np

    if not model.built or not getattr(model, "inputs", None):
        raise Unfit("The model does not say what it takes. Begin it with keras.Input.")
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        sides = f"{len(model.inputs)} inputs and {len(model.outputs)} outputs"
        raise Unfit(f"The model has {sides}. Lockstep trains models of one input and one output.")
    entry, exit_ = model.inputs[0], model.outputs[0]
    if len(exit_.shape) != 2 or exit_.shape[1] is None:
        raise Unfit(f"The model's output is {exit_.shape}. It must be [batch, classes] or [batch, targets].")
    example = np.zeros([1, *(size or 8 for size in entry.shape[1:])], entry.dtype)
    if not np.isfinite(np.asarray(model(example))).all():
        raise Unfit("The model's output on zeros is not finite. Save it before its training went wrong.")
    return ModelFacts(
        inputs=tuple(entry.shape[1:]),
        outputs=exit_.shape[1],
        parameters=model.count_params(),
        trainable=sum(int(np.prod(weight.shape)) for weight in model.trainable_weights),
        bytes=sum(int(np.prod(weight.shape)) * np.dtype(_plain(weight.dtype)).itemsize for weight in model.weights),
        ending=_ending(model),
        obstacles=obstacles(model),
        kernels=kernels(model),
        layers=tuple(_layer(layer) for layer in model.layers[:MAX_LAYERS]),
    )


def _layer(layer: Any) -> LayerFacts:
    shape = getattr(layer, "output_shape", None) or getattr(getattr(layer, "output", None), "shape", "")
    shown = " x ".join("?" if size is None else str(size) for size in shape[1:]) if isinstance(shape, tuple) else ""
    return LayerFacts(
        name=layer.name[:200], kind=type(layer).__name__[:200], shape=shown[:200], parameters=layer.count_params()
    )


def _ending(model: Any) -> str:
    last = model.layers[-1]
    if type(last).__name__ == "Softmax":
        return "softmax"
    return str(getattr(getattr(last, "activation", None), "__name__", "linear"))[:100]


def _plain(dtype: str) -> str:
    return "float16" if dtype == "bfloat16" else dtype


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
