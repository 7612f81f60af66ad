"""Keras optimizers from the spec, with the learning rate's warm-up, that leave summing gradients to the step."""

from __future__ import annotations

from typing import Any

from workers.contract.spec import JobSpec

CLIPS = {"value": "clipvalue", "norm": "clipnorm", "global_norm": "global_clipnorm"}
CLASSES = {"sgd": "SGD", "momentum": "SGD", "rmsprop": "RMSprop", "adam": "Adam", "adamw": "AdamW"}


def learning_rate_at(spec: JobSpec, step: int) -> float:
    """The learning rate of one step, counted from 1: rises in equal parts and is at its peak at step `warmup_steps`."""
    warmup = spec.training.warmup_steps
    return spec.peak_learning_rate * (min(1.0, step / warmup) if warmup else 1.0)


def build_optimizer(spec: JobSpec) -> Any:
    """A keras optimizer, inside a LossScaleOptimizer for float16. Call within the strategy's scope."""
    import keras

    chosen = spec.training.optimizer
    arguments = chosen.model_dump(exclude={"name", "learning_rate"})
    clip = spec.training.clip
    if clip is not None:
        arguments |= {CLIPS[name]: bound for name, bound in clip.model_dump(exclude_none=True).items()}
    rate = _warm_up(spec) if spec.training.warmup_steps else spec.peak_learning_rate
    optimizer = getattr(keras.optimizers, CLASSES[chosen.name])(learning_rate=rate, **arguments)
    # Keras would sum over the replicas once more.
    optimizer._all_reduce_sum_gradients = list
    if spec.training.mixed_precision == "float16":
        return keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


def _warm_up(spec: JobSpec) -> Any:
    import keras
    import tensorflow as tf

    peak, warmup = spec.peak_learning_rate, spec.training.warmup_steps

    class WarmUp(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
        """Computed on the device, so that several steps of one call each have their own."""

        def __call__(self, step: Any) -> Any:
            return peak * tf.minimum(1.0, (tf.cast(step, tf.float32) + 1.0) / warmup)

        def get_config(self) -> dict[str, float]:
            return {"peak": peak, "warmup": warmup}

    return WarmUp()
