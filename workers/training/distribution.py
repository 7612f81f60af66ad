"""What the loop asks of a strategy: the seam between one loop and every way to spread it over devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.contract.events import ReplicaInfo
from workers.contract.spec import JobSpec
from workers.training.checkpointing.state import is_seed, variables
from workers.training.collective_watch import CollectiveWatch, WaitedTooLong
from workers.training.objective import Objective

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.data import Split
    from workers.training.evaluation import Evaluator
    from workers.training.inference.predictor import Predictor
    from workers.training.steps import StepTaker

PACK_BYTES = 32 * 2**20
"""Of a strategy that leaves no choice."""
REPLICA_SEED = 7_919
"""Between the seeds of neighbouring replicas; replica 0 keeps the job's own, as on one device."""


class Distribution:
    """A synchronous tf.distribute strategy. A plugin whose strategy needs other ways offers a subclass as `Adapter`."""

    first_step = 0
    """Steps that an earlier job had done, where this one goes on from its checkpoint."""
    _watch: CollectiveWatch | None = None

    def __init__(self, strategy: Any, place: Place) -> None:
        self.strategy = strategy
        self.replicas = place.replicas
        self.local = place.process.replicas
        self.processes = len(place.processes)
        self._devices = strategy.extended.worker_devices
        options = place.spec.options_of("strategy")
        self._pack_bytes: int = getattr(options, "bytes_per_pack", PACK_BYTES)
        timeout: float | None = getattr(options, "timeout_seconds", None)
        if timeout is not None and self.processes > 1:
            self._watch = CollectiveWatch(timeout, place.process.name)

    def watch(self, give_up: Callable[[WaitedTooLong], None]) -> None:
        """Call `give_up`, from another thread, when a collective takes longer than the strategy's options allow."""
        if self._watch is not None:
            self._watch.start(give_up)

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
        from workers.training.streams.streamed import StreamedSteps

        kind = Steps if spec.dataset_info.files is None else StreamedSteps
        return kind(self, model, optimizer, objective, spec)

    def evaluator(self, model: Any, objective: Objective, *, split: Split, scale: float, batch: int) -> Evaluator:
        """What measures the model on one split of the data, which may be a Stream."""
        from workers.training.evaluation import Evaluator
        from workers.training.streams.streamed import StreamedEvaluator
        from workers.training.streams.streaming import Stream

        kind = StreamedEvaluator if isinstance(split, Stream) else Evaluator
        return kind(self, model, objective, split=split, scale=scale, batch=batch)

    def predictor(self, model: Any, objective: Objective, *, scale: float) -> Predictor:
        """What predicts examples in their order."""
        from workers.training.inference.predictor import Predictor

        return Predictor(self, model, objective, scale=scale)

    def settle(self, model: Any) -> None:
        """Bring the model's variables up to date, before they are evaluated or saved."""

    def replica_info(self, place: Place) -> tuple[ReplicaInfo, ...]:
        """Where each replica of the job computes, once the model and its optimizer are built."""
        return tuple(
            ReplicaInfo(
                replica=replica,
                process=process.name,
                device=f"{process.kind}:{process.devices[position // process.split]}",
                gauge="device" if process.kind == "gpu" else "process",
            )
            for process in place.processes
            for position, replica in enumerate(process.replicas)
        )

    def read_whole(self, variable: Any) -> NDArray[Any]:
        """A copy of a variable's whole value as replica 0 has it; called by every process."""
        import numpy as np
        import tensorflow as tf

        return np.asarray(tf.convert_to_tensor(variable).numpy())

    def assign_whole(self, variable: Any, value: NDArray[Any]) -> None:
        """Give a variable its whole value on every replica; called by every process, each with the same value."""
        variable.assign(value)

    def stand_ins(self, model: Any) -> dict[int, list[Any]]:
        """By the id of a variable of the model, the parts that are trained in its place; nothing where it is itself."""
        return {}

    def variables(self, model: Any, optimizer: Any) -> dict[str, list[Any]]:
        """All variables to keep by name (state.py), each as its parts along the first axis: mostly one."""
        return variables(model, optimizer, self.stand_ins(model))

    def shapes(self, model: Any, optimizer: Any) -> dict[str, tuple[int, ...]]:
        """The shape of each whole variable by name."""
        found = {}
        for name, parts in self.variables(model, optimizer).items():
            first = tuple(parts[0].shape)
            found[name] = (sum(part.shape[0] for part in parts), *first[1:]) if len(parts) > 1 else first
        return found

    def export_state(self, model: Any, optimizer: Any) -> dict[str, NDArray[Any]]:
        """Copies of all that there is to keep, whole, by names that no strategy changes. No step is under way.

        Called by every process, since reading may need all of them.
        """
        import numpy as np

        found = {}
        for name, parts in self.variables(model, optimizer).items():
            values = [self.read_whole(part) for part in parts]
            found[name] = values[0] if len(values) == 1 else np.concatenate(values)
        return found

    def import_state(self, model: Any, optimizer: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `export_state` gave under whatever strategy; before `vary_dropout` and `steps`.

        What is not in `arrays` stays as it was made. The shapes must fit.
        """
        import numpy as np

        with self.scope():
            for name, parts in self.variables(model, optimizer).items():
                if name not in arrays:
                    continue
                ends = [sum(each.shape[0] for each in parts[:end]) for end in range(1, len(parts))]
                values = np.split(arrays[name], ends) if ends else [arrays[name]]
                for part, value in zip(parts, values, strict=True):
                    self.assign_whole(part, value)
        self.settle(model)

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

        summed: list[Any] = []
        for pack in packs(gradients, self._pack_bytes):
            # One message instead of one per variable: small models spend their time on messages.
            flat = tf.concat([tf.reshape(gradient, [-1]) for gradient in pack], 0)
            whole = self._all_reduce(flat)
            parts = tf.split(whole, [gradient.shape.num_elements() for gradient in pack])
            summed += [tf.reshape(part, gradient.shape) for part, gradient in zip(parts, pack, strict=True)]
        return summed

    def vary_dropout(self, model: Any) -> None:
        """Give each replica random numbers of its own: the same seeds would drop the same units in every shard."""
        import tensorflow as tf

        states = [variable for variable in model.non_trainable_variables if is_seed(variable)]
        if not states or self.replicas == 1:
            return

        def shift(offset: Any) -> None:
            for seed in states:
                seed.assign(seed.value + tf.cast(offset, seed.value.dtype))

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
            return self._all_reduce(tf.where(first, vector, tf.zeros_like(vector)))

        return self.local_values(self.strategy.run(summed))[0]

    def meet(self) -> None:
        """Return when every process has come here."""
        self.agree(True)

    def agree(self, fine: bool) -> bool:
        """Whether every process says so; returns when each of them has."""
        if self.processes == 1:
            return fine
        import tensorflow as tf

        # The chief may still be saving.
        with self._watch.resting() if self._watch is not None else contextlib.nullcontext():
            votes = tf.function(self.sum_over_processes, autograph=False)(tf.constant([float(fine)]))
            return bool(votes.numpy()[0] > self.processes - 0.5)

    def _all_reduce(self, value: Any) -> Any:
        """The sum over all replicas; called by every replica."""
        import tensorflow as tf

        def summed(value: Any) -> Any:
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)

        return summed(value) if self._watch is None else self._watch.around(value, summed)


def connect(place: Place) -> Distribution:
    """The job's strategy. Waits for the other processes; must come before any TensorFlow operation."""
    module = catalog.find("strategy", place.spec.strategy.name).module
    strategy = module.create(place.spec.options_of("strategy"), place)
    adapter: Callable[[Any, Place], Distribution] = getattr(module, "Adapter", Distribution)
    return adapter(strategy, place)


def packs(gradients: list[Any], most: int = PACK_BYTES) -> list[list[Any]]:
    """Neighbours of one type, together at most `most` bytes (a larger one alone)."""
    packs: list[list[Any]] = []
    size = 0
    for gradient in gradients:
        width = gradient.shape.num_elements() * gradient.dtype.size
        if not packs or size + width > most or packs[-1][0].dtype != gradient.dtype:
            packs.append([])
            size = 0
        packs[-1].append(gradient)
        size += width
    return packs
