"""Variables in one place of a host, replicas on its devices, in one process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Literal

from pydantic import Field

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.layout import Layout, ProcessShape
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
