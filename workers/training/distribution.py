"""What the loop asks of a strategy: the seam between one loop and every way to spread it over devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.contract.spec import JobSpec
from workers.training.objective import Objective

if TYPE_CHECKING:
    from workers.training.steps import StepTaker

PACK_BYTES = 32 * 2**20
REPLICA_SEED = 7_919
"""Between the seeds of neighbouring replicas; replica 0 keeps the job's own, as on one device."""


class Distribution:
    """A synchronous tf.distribute strategy. A plugin whose strategy needs other ways offers a subclass as `Adapter`."""

    def __init__(self, strategy: Any, place: Place) -> None:
        self.strategy = strategy
        self.replicas = place.replicas
        self.local = place.process.replicas
        self.processes = len(place.processes)
        self._devices = strategy.extended.worker_devices

    def scope(self) -> Any:
        """Variables made inside belong to every replica."""
        return self.strategy.scope()

    def optimizer(self, model: Any, make: Callable[[], Any]) -> Any:
        """What `make` returns, built for the model's weights."""
        with self.scope():
            optimizer = make()
            optimizer.build(model.trainable_variables)
        return optimizer

    def steps(self, model: Any, optimizer: Any, objective: Objective, spec: JobSpec) -> StepTaker:
        """What takes this process's part of the steps."""
        from workers.training.steps import Steps

        return Steps(self, model, optimizer, objective, spec)

    def settle(self, model: Any) -> None:
        """Bring the model's variables up to date, before they are evaluated or saved."""

    def run(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Call `function` once per replica, its per-replica arguments unwrapped."""
        return self.strategy.run(function, args=tuple(args))

    def local_values(self, value: Any) -> tuple[Any, ...]:
        """One tensor for each replica of this process."""
        values: tuple[Any, ...] = self.strategy.experimental_local_results(value)
        return values

    def spread(self, values: Sequence[Any]) -> Any:
        """Put one array on the device of each replica of this process, in their order."""
        import tensorflow as tf

        placed = []
        for device, value in zip(self._devices, values, strict=True):
            with tf.device(device):
                placed.append(tf.identity(tf.convert_to_tensor(value)))
        pending = iter(placed)
        return self.strategy.experimental_distribute_values_from_function(lambda context: next(pending))

    def sum_gradients(self, gradients: list[Any]) -> list[Any]:
        """Sum each gradient over all replicas of the job; called by every replica."""
        if self.replicas == 1:
            return gradients
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        summed: list[Any] = []
        for pack in _packs(gradients):
            # One message instead of one per variable: small models spend their time on messages.
            flat = tf.concat([tf.reshape(gradient, [-1]) for gradient in pack], 0)
            whole = context.all_reduce(tf.distribute.ReduceOp.SUM, flat)
            parts = tf.split(whole, [gradient.shape.num_elements() for gradient in pack])
            summed += [tf.reshape(part, gradient.shape) for part, gradient in zip(parts, pack, strict=True)]
        return summed

    def vary_dropout(self, model: Any) -> None:
        """Give each replica random numbers of its own: the same seeds would drop the same units in every shard."""
        import tensorflow as tf

        states = [variable for variable in model.non_trainable_variables if variable.name == "seed_generator_state"]
        if not states or self.replicas == 1:
            return

        def shift(offset: Any) -> None:
            for state in states:
                state.assign(state.value + tf.cast(offset, state.value.dtype))

        offsets = self.spread([tf.constant([replica * REPLICA_SEED, 0], tf.int64) for replica in self.local])
        tf.function(lambda values: self.run(shift, (values,)), autograph=False)(offsets)

    def sum_over_processes(self, vector: Any) -> Any:
        """Sum a process's vector over all processes; each of them gets the whole. To be called inside a tf.function."""
        if self.processes == 1:
            return vector
        import tensorflow as tf

        def summed() -> Any:
            context = tf.distribute.get_replica_context()
            first = context.replica_id_in_sync_group % len(self.local) == 0
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.where(first, vector, tf.zeros_like(vector)))

        return self.local_values(self.strategy.run(summed))[0]

    def meet(self) -> None:
        """Return when every process has come here."""
        if self.processes > 1:
            import tensorflow as tf

            tf.function(lambda: self.sum_over_processes(tf.ones([1])), autograph=False)()


def connect(place: Place) -> Distribution:
    """The job's strategy. Waits for the other processes; must come before any TensorFlow operation."""
    module = catalog.find("strategy", place.spec.strategy.name).module
    strategy = module.create(place.spec.options_of("strategy"), place)
    adapter: Callable[[Any, Place], Distribution] = getattr(module, "Adapter", Distribution)
    return adapter(strategy, place)


def _packs(gradients: list[Any]) -> list[list[Any]]:
    """Neighbours of one type, together at most PACK_BYTES (a larger one alone)."""
    packs: list[list[Any]] = []
    size = 0
    for gradient in gradients:
        width = gradient.shape.num_elements() * gradient.dtype.size
        if not packs or size + width > PACK_BYTES or packs[-1][0].dtype != gradient.dtype:
            packs.append([])
            size = 0
        packs[-1].append(gradient)
        size += width
    return packs
