"""The inner loop: K steps in one device call, each the same maths under every strategy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from workers.contract.spec import JobSpec
from workers.training.data import Split, epoch_order, replica_batches, worker_order
from workers.training.distribution import Distribution
from workers.training.micro_batches import plus, summed, unrolled
from workers.training.objective import Objective
from workers.training.optimizers import players_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Hints(NamedTuple):
    """What a process hands in before a call, and the mean over the processes after it, so that all decide alike.

    `pause` and `save` are above 0 where somebody was asked to pause the job, or to save a checkpoint.
    """

    seconds_per_step: float = 0.0
    pause: float = 0.0
    save: float = 0.0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one call brought back.

    `losses` are exact global means, float32 [K]; `metrics` the sums over the global batch, float32 [K]; `hints` the
    means over the processes of what they handed in.
    `replicas` says who took each step where one replica takes it alone; `notice` is news for people, or empty.
    """

    losses: NDArray[np.float32]
    metrics: NDArray[np.float32]
    hints: Hints
    replicas: tuple[int, ...] = ()
    notice: str = ""
    waited: float = 0.0
    """Seconds of the call that were spent waiting for data from disk."""


class StepTaker(Protocol):
    """What the loop asks of whatever takes a job's steps."""

    def place(self, split: Any, scale: float) -> None:
        """Bring the training data (a Split, or a Stream that is read as it is used) to where it is used, once."""

    def begin_epoch(self, epoch: int) -> None:
        """Decide the order of an epoch, counted from 0."""

    def run(self, start: int, count: int, hints: Hints, fence: int) -> Outcome:
        """Return when `count` steps of the epoch from step `start` on are done; none from `fence` on may be begun."""

    @property
    def under_way(self) -> int:
        """Steps that were begun and are not done: what the weights hold belongs to no step until there are none."""


class Steps:
    """Training data on the devices, and the compiled call that walks through it."""

    def __init__(
        self, distribution: Distribution, model: Any, optimizer: Any, objective: Objective, spec: JobSpec
    ) -> None:
        self._distribution = distribution
        self._spec = spec
        self._weights = model.trainable_variables
        self._optimizer = optimizer
        self._objective = objective
        self._gradients = _gradients_of(model, optimizer, objective, spec)
        self._unrolled = unrolled(spec.micro_batches)
        self._call: Callable[..., Any] | None = None
        self._samples = 0
        self._data: tuple[Any, ...] = ()
        self._order: Any = None

    def place(self, split: Split, scale: float) -> None:
        """Copy the training data to every replica's device, once."""
        count = len(self._distribution.local)
        self._samples = len(split)
        features = self._distribution.spread([split.features] * count)
        targets = self._distribution.spread([split.targets] * count)
        self._data = (features, targets, self._distribution.spread([np.float32(scale)] * count))

    def begin_epoch(self, epoch: int) -> None:
        """Copy the order of an epoch (counted from 0) to the devices."""
        training, micro_batches = self._spec.training, self._spec.micro_batches
        if training.sharding == "off" and self._distribution.processes > 1:
            self._order = self._distribution.spread(self._own_shares(epoch))
            return
        order = epoch_order(self._samples, seed=training.seed, epoch=epoch, shuffle=training.shuffle)
        shares = [
            replica_batches(
                order,
                global_batch=training.global_batch,
                micro_batches=micro_batches,
                replicas=self._distribution.replicas,
                replica=replica,
            )
            for replica in self._distribution.local
        ]
        self._order = self._distribution.spread(shares)

    def _own_shares(self, epoch: int) -> list[NDArray[np.int32]]:
        """As replica_batches, of an order that this worker alone walks in."""
        training, micro_batches, local = self._spec.training, self._spec.micro_batches, self._distribution.local
        batch = training.global_batch // self._distribution.replicas * len(local)
        steps = self._spec.steps_per_epoch
        order = worker_order(
            self._samples,
            training=training,
            worker=local[0] // len(local),
            batch=batch * micro_batches,
            first=epoch * steps,
            steps=steps,
        )
        return [
            replica_batches(
                order, global_batch=batch, micro_batches=micro_batches, replicas=len(local), replica=replica
            )
            for replica in range(len(local))
        ]

    under_way = 0

    def run(self, start: int, count: int, hints: Hints, fence: int) -> Outcome:
        """Take `count` steps of the epoch from step `start` on; returns when they are done."""
        import tensorflow as tf

        if self._call is None:
            self._call = tf.function(self._walk, autograph=False)
        answer = self._call(
            self._data,
            self._order,
            tf.constant(start),
            tf.constant(count),
            tf.constant(hints, tf.float32),
        ).numpy()
        return self._outcome(answer, count)

    def _outcome(self, answer: NDArray[np.float32], count: int) -> Outcome:
        """What `_walk` brought back of `count` steps."""
        agreed = Hints(*(float(hint) / self._distribution.processes for hint in answer[2 * count :]))
        return Outcome(answer[:count], answer[count : 2 * count], agreed)

    def _walk(self, data: tuple[Any, ...], order: Any, start: Any, count: Any, hints: Any) -> Any:
        """Float32 [2 * count + 3]: losses, metric sums, the hints; summed over the job."""
        import tensorflow as tf

        def body(index: Any, results: Any) -> tuple[Any, Any]:
            pair = self._step((*data, order, start + index))
            return index + 1, results.write(index, tf.add_n(list(self._distribution.local_values(pair))))

        results = tf.TensorArray(tf.float32, size=count, element_shape=[2])
        _, results = tf.while_loop(
            lambda index, _: index < count, body, (tf.constant(0), results), parallel_iterations=1
        )
        vector = tf.concat([tf.reshape(tf.transpose(results.stack()), [-1]), hints], 0)
        return self._distribution.sum_over_processes(vector)

    def _step(self, shares: tuple[Any, ...]) -> Any:
        """One step: float32 [2] of each replica, its part of the global loss and its metric sum."""
        import tensorflow as tf

        rounds, run = self._spec.micro_batches // self._unrolled, self._distribution.run
        if rounds == 1:
            return run(lambda *share: self._applied(self._sums(0, *share)), shares)

        def add(number: Any, total: Any) -> tuple[Any, Any]:
            return number + 1, run(added, (number, total, *shares))

        def added(number: Any, total: list[Any], *share: Any) -> list[Any]:
            return plus(total, self._sums(number, *share))

        total = run(lambda: [*(tf.zeros(weight.shape, weight.dtype) for weight in self._weights), tf.zeros(2)], ())
        _, total = tf.while_loop(lambda number, _: number < rounds, add, (tf.constant(0), total), parallel_iterations=1)
        return run(self._applied, (total,))

    def _sums(self, number: Any, *share: Any) -> list[Any]:
        """What one replica's shares of the micro-batches of a round give together: gradients, and float32 [2]."""
        features, targets, scale, order, index = share
        rows = [order[index, number * self._unrolled + place] for place in range(self._unrolled)]
        return summed(self._gradients, self._objective, (features, targets, scale), rows)

    def _applied(self, total: list[Any]) -> Any:
        """Called by each replica with the gradients of its shares, and what came with them, which is returned."""
        *gradients, result = total
        self._optimizer.apply(self._distribution.sum_gradients(gradients), self._weights)
        return result


def _gradients_of(model: Any, optimizer: Any, objective: Objective, spec: JobSpec) -> Callable[..., Any]:
    """Gradients of one replica's share of one global batch, scaled for the sum over all; and float32 [2] as above."""
    import tensorflow as tf

    variables = [weight.value for weight in model.trainable_variables]
    scaled = spec.training.mixed_precision == "float16"
    by_sum = spec.training.aggregation.method == "sum"
    players = players_of(spec, model.trainable_variables)

    def gradients_of(features: Any, targets: Any) -> list[Any]:
        with tf.GradientTape(watch_accessed_variables=False, persistent=len(players) > 1) as tape:
            tape.watch(variables)
            losses, metrics = objective.values(targets, model(features, training=True))
            totals = [tf.reduce_sum(losses), tf.reduce_sum(metrics)]
            targets = totals if by_sum else [total / spec.samples_per_step for total in totals]
            targets = [optimizer.scale_loss(targets[0])] if scaled else targets
        gradients: list[Any] = [None] * len(variables)
        for target, members in zip(targets, players, strict=False):
            own = [variables[index] for index in members]
            for index, gradient in zip(members, tape.gradient(target, own), strict=True):
                # Those of embeddings come as the rows that were used: made whole here.
                gradients[index] = tf.reshape(gradient, variables[index].shape)
        return [*gradients, tf.stack([totals[0] / spec.samples_per_step, totals[1]])]

    if spec.training.jit:
        return tf.function(gradients_of, autograph=False, jit_compile=True)  # type: ignore[no-any-return]
    return gradients_of
