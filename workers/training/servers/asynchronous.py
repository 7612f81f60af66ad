"""Steps that workers take each on their own: the coordinator deals them out, and counts them as they are done."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.contract.spec import JobSpec
from workers.training.checkpointing.state import is_seed
from workers.training.distribution import REPLICA_SEED
from workers.training.objective import Objective
from workers.training.servers.feeding import Feed, feed_of
from workers.training.servers.roll_call import Answers
from workers.training.servers.serving import INDEX, STEP
from workers.training.steps import Hints, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.servers.coordinated import Coordinated

LOOK_SECONDS = 0.25
RETRY_SECONDS = 0.05
BUSY = 2
"""For how many calls' time a closure keeps its worker busy: the way there and back must be little beside it."""


class AsynchronousSteps:
    """A worker takes the next `samples_per_step` examples of the seed's order, reads the weights as they are then, and
    the servers apply its gradients as they come. So every example is used once an epoch, whoever takes it; one worker
    alone trains exactly as one device does.

    Quick steps are dealt out several at a time, so that the way to a worker and back is paid for once: they still read
    the weights and apply their gradients one by one. Steps that were under way in a worker that died are taken again
    by another one, and those that it had applied then count twice.
    """

    def __init__(
        self, distribution: Coordinated, model: Any, optimizer: Any, objective: Objective, spec: JobSpec
    ) -> None:
        self._chief = distribution
        self._steps_per_epoch, self._total = spec.steps_per_epoch, spec.total_steps
        self._ahead = distribution.workers * spec.options_of("strategy").in_flight  # type: ignore[attr-defined]
        self._feed = feed_of(distribution, spec)
        replica = _worker_step(distribution, model, optimizer, objective, spec)
        self._function = _worker_steps(distribution, self._feed, objective, replica)
        self._pending: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[NDArray[np.float32] | Exception] = queue.SimpleQueue()
        self._first = self._steps = self._dealt = self._taken = self._closures = 0
        self._finished = np.zeros((3, 0), np.float32)
        self._workers = [process.name for process in distribution.servers if process.role == "worker"]
        self._answers = Answers(self._workers)
        self._seconds_per_step = 0.0
        self._warm = False

    def place(self, split: Any, scale: float) -> None:
        """Give every worker, once, what it keeps of the training data (a Split, or a Stream that the chief reads)."""
        import tensorflow as tf

        given = (tf.constant(scale, tf.float32), *self._feed.place(split, scale))

        def whole() -> Any:
            number = tf.strings.to_number(tf.io.read_file(INDEX))
            return tf.data.Dataset.from_tensors((number, *given)).repeat()

        self._data = iter(self._chief.coordinator.create_per_worker_dataset(whole))
        for _ in range(self._ahead):
            threading.Thread(target=self._wait, name="steps", daemon=True).start()
        self._chief.welcome()

    def begin_epoch(self, epoch: int) -> None:
        """Decide the order of an epoch (counted from 0). No step is under way."""
        self._feed.begin_epoch(epoch)
        self._first = epoch * self._steps_per_epoch
        self._steps = min(self._steps_per_epoch, self._total - self._first)
        self._dealt = self._taken = 0

    @property
    def under_way(self) -> int:
        """Steps that were dealt out and not yet handed on by `run`."""
        return self._dealt - self._taken

    def run(self, start: int, count: int, hints: Hints, fence: int) -> Outcome:
        """Return when `count` more steps of the epoch are done. More may be under way, none from step `fence` on.

        Raises PeerLost, or the error of a step that no other worker can mend.
        """
        from tensorflow.errors import OpError

        self._dealt = max(self._dealt, start)
        end = min(fence, self._steps)
        size = max(1, min(count, BUSY * count // self._chief.workers))
        began, arrived, waited = time.monotonic(), 0, self._feed.waited
        while self._finished.shape[1] < count:
            try:
                while self._closures < self._ahead and self._dealt < end:
                    self._deal(size, end)
                done = self._next()
            except OpError:
                # TensorFlow says that somebody is gone before the roll call knows who.
                self._chief.roll_call.blame()
                raise
            self._closures -= 1
            arrived += done.shape[1]
            self._finished = np.concatenate([self._finished, done], 1)
        self._learn(time.monotonic() - began, arrived)
        losses, metrics, workers = self._finished[:, :count]
        self._finished = self._finished[:, count:]
        self._taken = start + count
        hints = hints._replace(seconds_per_step=self._seconds_per_step)
        replicas = tuple(workers.astype(int).tolist())
        return Outcome(losses, metrics, hints, replicas, self._chief.roll_call.news(), self._feed.waited - waited)

    def _learn(self, seconds: float, steps: int) -> None:
        """What a step costs: of those that came, not of those that were asked for. The first are spent on compiling."""
        if self._warm and steps:
            before = self._seconds_per_step or seconds / steps
            self._seconds_per_step = (before + seconds / steps) / 2
        self._warm = True

    def _deal(self, size: int, end: int) -> None:
        """Give the next `size` steps to a worker; fewer near the `end`, so that all end together."""
        import tensorflow as tf

        left = end - self._dealt
        steps, brought = self._feed.take(self._dealt, min(size, -(-left // self._ahead)))
        number = tf.constant(self._first + self._dealt, tf.int64)
        arguments = (self._data, number, *map(tf.constant, brought))
        self._pending.put(self._chief.coordinator.schedule(self._function, args=arguments))
        if not self._closures:
            self._answers.ask()
        self._dealt += steps
        self._closures += 1

    def _next(self) -> NDArray[np.float32]:
        """What the next steps to be done brought back: float32 [3, steps]."""
        while True:
            try:
                answer = self._done.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                self._chief.roll_call.check()
                self._answers.check(self._chief.roll_call.gone)
                self._chief.coordinator.done()  # raises what ended the steps, if anything did
                continue
            if isinstance(answer, Exception):
                raise answer
            self._answers.note(self._workers[int(answer[2, 0])])
            return answer

    def _wait(self) -> None:
        """The life of a thread: some steps after the others, each time until they are done."""
        while True:
            remote = self._pending.get()
            try:
                self._done.put(fetched(remote))
            except Exception as error:  # noqa: BLE001  the training thread raises it
                self._done.put(error)


def fetched(remote: Any) -> Any:
    """What a closure brought back, once it has."""
    import tensorflow as tf

    while True:
        try:
            return remote.fetch()
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError):
            # Its worker died before it had answered: the coordinator gives the closure to another one. Whether there
            # is any, and whether the servers live, the training thread finds out.
            time.sleep(RETRY_SECONDS)


def _worker_steps(
    chief: Coordinated, feed: Feed, objective: Objective, replica: Callable[..., Any]
) -> Callable[..., Any]:
    """Steps of one worker, one after the other: float32 [3, steps], mean losses, metric sums and its own number."""
    import tensorflow as tf

    def steps(data: Any, first: Any, *brought: Any) -> Any:
        with tf.device("/device:CPU:0"):
            worker, scale, *given = data.get_next()
            count, examples = feed.examples(tuple(given), brought)
            tf.io.write_file(STEP, tf.strings.as_string(first + 1))

        def body(index: Any, results: Any) -> tuple[Any, Any]:
            with tf.device("/device:CPU:0"):
                batch, labels = objective.prepare(*examples(index), scale)
            result = chief.strategy.run(replica, args=(batch, labels, first + tf.cast(index, tf.int64)))
            return index + 1, results.write(index, result)

        results = tf.TensorArray(tf.float32, size=count, element_shape=[2])
        _, results = tf.while_loop(
            lambda index, _: index < count, body, (tf.constant(0), results), parallel_iterations=1
        )
        return tf.concat([tf.transpose(results.stack()), tf.fill([1, count], worker)], 0)

    return tf.function(steps, autograph=False)  # type: ignore[no-any-return]


def _worker_step(
    chief: Coordinated, model: Any, optimizer: Any, objective: Objective, spec: JobSpec
) -> Callable[..., Any]:
    """One step in a worker: float32 [2], its mean loss and its metric sum."""
    import tensorflow as tf

    summed = spec.training.aggregation.method == "sum"
    seeds = {id(v): tf.constant(v.numpy()) for v in model.non_trainable_variables if is_seed(v)}

    def replica(features: Any, targets: Any, number: Any) -> Any:
        values = chief.read([*chief.weights, *chief.statistics])
        weights, state = values[: len(chief.weights)], values[len(chief.weights) :]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(weights)
            outputs, after = model.stateless_call(
                weights, _full_state(model, state, seeds, number), features, training=True
            )
            losses, metrics = objective.values(targets, outputs)
            total = tf.reduce_sum(losses)
            loss = total / spec.samples_per_step
        gradients = tape.gradient(total if summed else loss, weights)
        chief.apply(optimizer, gradients)
        _add_changes(chief, model, state, after)
        return tf.stack([loss, tf.reduce_sum(metrics)])

    return replica


def _full_state(model: Any, state: list[Any], seeds: dict[int, Any], number: Any) -> list[Any]:
    """All of the model's non-trainable values: random numbers follow from the step, so that no two drop alike."""
    import tensorflow as tf

    kept, offset = iter(state), tf.stack([number * REPLICA_SEED, tf.zeros_like(number)])
    full = []
    for variable in model.non_trainable_variables:
        seed = seeds.get(id(variable))
        full.append(next(kept) if seed is None else seed + tf.cast(offset, seed.dtype))
    return full


def _add_changes(chief: Coordinated, model: Any, before: list[Any], after: list[Any]) -> None:
    """Add what a step changed (moving means), so that it does not undo what others changed meanwhile."""
    changed = [value for v, value in zip(model.non_trainable_variables, after, strict=True) if not is_seed(v)]
    changes = [new - old for old, new in zip(before, changed, strict=True)]
    for part, change in chief.sent(chief.statistics, changes):
        part.assign_add(change)
