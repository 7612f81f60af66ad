"""Keras optimizers from the spec, with the learning rate of each step, that leave summing gradients to the step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workers.contract import catalog
from workers.contract.spec import JobSpec

CLIPS = {"value": "clipvalue", "norm": "clipnorm", "global_norm": "global_clipnorm"}
CLASSES = {"sgd": "SGD", "momentum": "SGD", "rmsprop": "RMSprop", "adam": "Adam", "adamw": "AdamW"}

INITIAL_SCALE = 2.0**15
"""Of the loss in float16, as Keras begins."""


def learning_rate_at(spec: JobSpec, step: int) -> float:
    """The learning rate of one step, counted from 1: rises in equal parts and is at its peak at step `warmup_steps`.

    From there on it follows the schedule (workers/contract/schedule.py).
    """
    warmup, schedule = max(1, spec.training.warmup_steps), spec.training.schedule
    since = step - warmup
    if since <= 0:
        return spec.peak_learning_rate * step / warmup
    if schedule.kind == "step" and schedule.every_steps and schedule.factor:
        return float(spec.peak_learning_rate * schedule.factor ** (since // schedule.every_steps))
    if schedule.kind == "cosine":
        final = schedule.final or 0.0
        done = min(1.0, since / max(1, spec.total_steps - warmup))
        return spec.peak_learning_rate * (final + (1 - final) * (1 + math.cos(math.pi * done)) / 2)
    return spec.peak_learning_rate


def players_of(spec: JobSpec, weights: list[Any]) -> list[list[int]]:
    """Indexes of the weights that each of the model's losses is for; one loss is for all of them."""
    module = catalog.find("model", spec.model.name).module
    if not hasattr(module, "player_of"):
        return [list(range(len(weights)))]
    players = [module.player_of(weight.path) for weight in weights]
    return [[index for index, one in enumerate(players) if one == player] for player in sorted(set(players))]


class Optimizers:
    """One keras optimizer for each of a model's players, to be used as if they were one."""

    def __init__(self, spec: JobSpec, rates: Sequence[float]) -> None:
        self._spec = spec
        self.each = [_one(spec, rate) for rate in rates]
        self._players: list[list[int]] = []

    @property
    def variables(self) -> list[Any]:
        """The state of all of them, in the order of the players."""
        return [variable for one in self.each for variable in one.variables]

    @property
    def iterations(self) -> Any:
        """Steps taken, alike in all of them."""
        return self.each[0].iterations

    @property
    def learning_rate(self) -> Any:
        """The first player's, which is the job's."""
        return self.each[0].learning_rate

    def build(self, weights: list[Any]) -> None:
        """Make their state."""
        self._players = players_of(self._spec, weights)
        for one, members in zip(self.each, self._players, strict=True):
            one.build([weights[index] for index in members])

    def apply(self, gradients: list[Any], weights: list[Any]) -> None:
        """One step of each; called by every replica."""
        for one, members in zip(self.each, self._players, strict=True):
            one.apply([gradients[index] for index in members], [weights[index] for index in members])


def build_optimizer(spec: JobSpec) -> Any:
    """A keras optimizer, inside a LossScaleOptimizer for float16, or Optimizers. Call within the strategy's scope."""
    module = catalog.find("model", spec.model.name).module
    if hasattr(module, "rates"):
        return Optimizers(spec, module.rates(spec.options_of("model")))
    return _one(spec, 1.0)


def _one(spec: JobSpec, factor: float) -> Any:
    """With `factor` times the job's learning rate."""
    import keras

    chosen = spec.training.optimizer
    arguments = chosen.model_dump(exclude={"name", "learning_rate"})
    clip = spec.training.clip
    if clip is not None:
        arguments |= {CLIPS[name]: bound for name, bound in clip.model_dump(exclude_none=True).items()}
    constant = spec.training.schedule.kind == "constant" and not spec.training.warmup_steps
    peak = spec.peak_learning_rate * factor
    rate = peak if constant else _scheduled(spec, peak)
    optimizer = getattr(keras.optimizers, CLASSES[chosen.name])(learning_rate=rate, **arguments)
    # Keras would sum over the replicas once more.
    optimizer._all_reduce_sum_gradients = list
    if spec.training.mixed_precision == "float16":
        # A sum's gradients are larger by the batch: at a mean's scale they overflow, and the first steps are skipped.
        batch = spec.samples_per_step if spec.training.aggregation.method == "sum" else 1
        return keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=INITIAL_SCALE / batch)
    return optimizer


def _scheduled(spec: JobSpec, peak: float) -> Any:
    import keras
    import tensorflow as tf

    warmup = max(1, spec.training.warmup_steps)
    length, schedule = max(1, spec.total_steps - warmup), spec.training.schedule
    final = schedule.final or 0.0

    class Scheduled(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
        """`learning_rate_at` on the device, so that several steps of one call each have their own."""

        def __call__(self, step: Any) -> Any:
            number = tf.cast(step, tf.int64) + 1
            since = tf.maximum(number - warmup, 0)
            rising = tf.minimum(1.0, tf.cast(number, tf.float32) / warmup)
            if schedule.kind == "step":
                falls = tf.cast(since // schedule.every_steps, tf.float32)
                return peak * rising * tf.pow(tf.constant(schedule.factor, tf.float32), falls)
            if schedule.kind == "cosine":
                done = tf.minimum(1.0, tf.cast(since, tf.float32) / length)
                return peak * rising * (final + (1 - final) * (1 + tf.cos(math.pi * done)) / 2)
            return peak * rising

        def get_config(self) -> dict[str, Any]:
            return {"peak": peak, "warmup": warmup, "length": length, **schedule.model_dump()}

    return Scheduled()
