"""Variables in one place of a host, replicas on its devices, in one process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Literal

from pydantic import Field

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.layout import Layout, ProcessShape
from workers.contract.problems import Problem
from workers.contract.spec import Training
from workers.training.devices import logical_devices
from workers.training.distribution import REPLICA_SEED, Distribution

title = "Central storage"
summary = "One process, a replica on each device of one host; the weights live once, in the host's memory."


class Options(_Options):
    """How many devices, and of which kind."""

    devices: int = Field(
        2, ge=1, le=64, title="Devices", description="Replicas, one on each device; all of them read the same weights."
    )
    device_type: Literal["auto", "cpu", "gpu"] = Field(
        "auto", title="Device type", description="Auto takes GPUs where there are enough, else CPUs."
    )


def layout(options: Options) -> Layout:
    """One process with all devices."""
    return Layout(processes=(ProcessShape(kind=options.device_type, devices=options.devices),))


def check_training(options: Options, training: Training) -> list[Problem]:
    """A step that XLA compiled reaches no variable of another device (tensorflow.org/xla/known_issues)."""
    if not training.jit:
        return []
    message = "cannot compile a step whose weights live on another device"
    return [Problem("jit", message, True, "Switch it off, or use mirrored")]


def create(options: Options, place: Place) -> Any:
    """A tf.distribute.experimental.CentralStorageStrategy."""
    import tensorflow as tf

    return tf.distribute.experimental.CentralStorageStrategy(logical_devices(place.process), "CPU:0")


class Adapter(Distribution):
    """Says how a replica's assignment reaches the one copy, where Keras leaves it open."""

    def scope(self) -> AbstractContextManager[Any]:
        """Variables made inside live once; what a replica assigns to them is taken from the first one."""
        import tensorflow as tf

        def creator(create: Any, **arguments: Any) -> Any:
            if arguments.get("aggregation") in (None, tf.VariableAggregation.NONE):
                arguments["aggregation"] = tf.VariableAggregation.ONLY_FIRST_REPLICA
            return create(**arguments)

        stack = ExitStack()
        stack.enter_context(self.strategy.scope())
        stack.enter_context(tf.variable_creator_scope(creator))
        return stack

    def optimizer(self, model: Any, make: Callable[[], Any]) -> Any:
        """One that scales the loss counts its steps without a branch."""
        import keras

        optimizer = super().optimizer(model, make)
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            _count_without_branch(optimizer)
        return optimizer

    def vary_dropout(self, model: Any) -> None:
        """The state of the random numbers lives once as well, so each replica moves what it draws from it."""
        import tensorflow as tf

        def moved(draw: Callable[..., Any]) -> Callable[..., Any]:
            def next_seed(*arguments: Any, **named: Any) -> Any:
                seed = draw(*arguments, **named)
                replica = tf.distribute.get_replica_context().replica_id_in_sync_group
                return seed + tf.cast(tf.stack([replica * REPLICA_SEED, 0]), seed.dtype)

            return next_seed

        for layer in model._flatten_layers():
            generator = getattr(layer, "seed_generator", None)
            if generator is not None:
                generator.next = moved(generator.next)


def _count_without_branch(scaler: Any) -> None:
    """Keras counts finite steps, and doubles the scale after enough of them, in a branch that each replica takes; what
    replicas assign to a variable that lives once must not stand in a branch."""
    from keras import ops

    def handle_finite(gradients: list[Any], weights: Any) -> None:
        scale, steps = scaler.dynamic_scale, scaler.step_counter
        scaler.inner_optimizer.apply([ops.divide(gradient, scale) for gradient in gradients], weights)
        enough = ops.equal(steps, scaler.dynamic_growth_steps - 1)
        scale.assign(ops.where(enough, scale * 2.0, scale))
        steps.assign(ops.where(enough, 0, steps + 1))

    scaler._stateful_handle_finite_grads = handle_finite
