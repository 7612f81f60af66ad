"""The model of a job, as every kind of job begins with it, and what the chief tells once all is built."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Mapping
from typing import Any

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.contract.events import Started
from workers.training.checkpointing import initial_model
from workers.training.data import Data
from workers.training.distribution import Distribution


def build_model(place: Place, distribution: Distribution) -> Any:
    """The model as replicated variables, from the seed or the initial model. The same seed gives the same weights.

    Raises ModelFileError.
    """
    import keras

    spec, training = place.spec, place.spec.training
    file = None if place.resume else training.initial_model
    given = initial_model.read(file) if file is not None else []
    # Names of layers count from the start, and a checkpoint holds weights by name.
    keras.utils.clear_session(free_memory=False)
    if training.mixed_precision != "none":
        keras.mixed_precision.set_dtype_policy(f"mixed_{training.mixed_precision}")
    keras.utils.set_random_seed(training.seed)
    build = catalog.find("model", spec.model.name).module.build_model
    with distribution.scope():
        model = build(spec.dataset_info, spec.options_of("model"))
        if file is not None:
            initial_model.assign(model, given, file)
    if spec.layout.replicas > 1 and not training.jit:  # XLA cannot talk to other replicas
        _normalize_over_all(model)
    return model


def _normalize_over_all(model: Any) -> None:
    """Let batch normalization see the global batch, so that replicas learn what one device would."""
    import keras

    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = True


def started(place: Place, distribution: Distribution, data: Data, model: Any, *, steps_per_call: int) -> Started:
    """The exact figures of a job whose model and optimizer are built."""
    import keras
    import tensorflow as tf

    spec = place.spec
    return Started(
        time=time.time(),
        process=place.process.name,
        replicas=distribution.replica_info(place),
        global_batch=spec.samples_per_step,
        per_replica_batch=spec.training.global_batch // place.replicas,
        steps_per_epoch=spec.steps_per_epoch,
        total_steps=spec.total_steps,
        training_samples=len(data.training),
        validation_samples=len(data.validation),
        test_samples=len(data.test),
        parameters=model.count_params(),
        peak_learning_rate=spec.peak_learning_rate,
        steps_per_call=steps_per_call,
        versions={"python": platform.python_version(), "tensorflow": tf.__version__, "keras": keras.__version__},
    )


def narrate(what: str, metrics: Mapping[str, float]) -> None:
    """A line for the log, which people read beside the charts."""
    figures = "".join(f", {name} {value:.4g}" for name, value in metrics.items())
    sys.stdout.write(f"{what}{figures}\n")
    sys.stdout.flush()
