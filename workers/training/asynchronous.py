"""Steps that workers take each on their own: the coordinator deals them out, and counts them as they are done."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.contract.spec import JobSpec
from workers.training.data import Split, epoch_order, replica_batches
from workers.training.distribution import REPLICA_SEED
from workers.training.objective import Objective
from workers.training.serving import INDEX, STEP
from workers.training.steps import Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.coordinated import Coordinated

LOOK_SECONDS = 0.25
RETRY_SECONDS = 0.05


def is_seed(variable: Any) -> bool:
    """Whether this is the state of a layer's random numbers, which follow from the step instead."""
    return bool(variable.name == "seed_generator_state")


class AsynchronousSteps:
    """A worker takes the next `samples_per_step` examples of the seed's order, reads the weights as they are then, and
    the servers apply its gradients as they come. So every example is used once an epoch, whoever takes it; one worker
    alone trains exactly as one device does.

    A step that was under way in a worker that died is taken again by another one, and may then count twice.
    """

    def __init__(
        self, distribution: Coordinated, model: Any, optimizer: Any, objective: Objective, spec: JobSpec
    ) -> None:
        self._chief = distribution
        self._training = spec.training
        self._samples_per_step = spec.samples_per_step
        self._steps_per_epoch, self._total = spec.steps_per_epoch, spec.total_steps
        self._ahead = distribution.workers * spec.options_of("strategy").in_flight  # type: ignore[attr-defined]
        self._function = _worker_step(distribution, model, optimizer, objective, spec)
        self._pending: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[NDArray[np.float32] | Exception] = queue.SimpleQueue()
        self._rows: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self._first = self._dealt = self._taken = 0

    def place(self, split: Split, scale: float) -> None:
        """Send the training data to every worker, once."""
        import tensorflow as tf

        self._samples = len(split)
        features, targets = tf.constant(split.features), tf.constant(split.targets)

        def whole() -> Any:
            number = tf.strings.to_number(tf.io.read_file(INDEX))
            return tf.data.Dataset.from_tensors((features, targets, tf.constant(scale, tf.float32), number)).repeat()

        self._data = iter(self._chief.coordinator.create_per_worker_dataset(whole))
        for _ in range(self._ahead):
            threading.Thread(target=self._wait, name="step", daemon=True).start()
        self._chief.welcome()

    def begin_epoch(self, epoch: int) -> None:
        """Decide the order of an epoch (counted from 0). No step is under way."""
        order = epoch_order(self._samples, seed=self._training.seed, epoch=epoch, shuffle=self._training.shuffle)
        self._rows = replica_batches(order, global_batch=self._samples_per_step, replicas=1, replica=0)[:, 0]
        self._first = epoch * self._steps_per_epoch
        self._rows = self._rows[: self._total - self._first]
        self._dealt = self._taken = 0

    def run(self, start: int, count: int, seconds_per_step: float) -> Outcome:
        """Return when `count` more steps of the epoch are done. More may be under way, none beyond the epoch.

        Raises PeerLost, or the error of a step that no other worker can mend.
        """
        from tensorflow.errors import OpError

        if start > self._dealt:
            self._dealt = self._taken = start
        done: list[NDArray[np.float32]] = []
        while len(done) < count:
            try:
                while self._dealt < min(self._taken + self._ahead, len(self._rows)):
                    self._deal()
                done.append(self._next())
            except OpError:
                # TensorFlow says that somebody is gone before the roll call knows who.
                self._chief.roll_call.blame()
                raise
            self._taken += 1
        losses, metrics, workers = np.stack(done, 1)
        replicas = tuple(int(worker) for worker in workers)
        return Outcome(losses, metrics, seconds_per_step, replicas, self._chief.roll_call.news())

    def _deal(self) -> None:
        import tensorflow as tf

        rows, number = tf.constant(self._rows[self._dealt]), tf.constant(self._first + self._dealt, tf.int64)
        self._pending.put(self._chief.coordinator.schedule(self._function, args=(self._data, rows, number)))
        self._dealt += 1

    def _next(self) -> NDArray[np.float32]:
        """What the next step to be done brought back."""
        while True:
            try:
                answer = self._done.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                self._chief.roll_call.check()
                self._chief.coordinator.done()  # raises what ended the steps, if anything did
                continue
            if isinstance(answer, Exception):
                raise answer
            return answer

    def _wait(self) -> None:
        """The life of a thread: one step after the other, each until it is done."""
        while True:
            remote = self._pending.get()
            try:
                self._done.put(_fetch(remote))
            except Exception as error:  # noqa: BLE001  the training thread raises it
                self._done.put(error)


def _fetch(remote: Any) -> NDArray[np.float32]:
    import tensorflow as tf

    while True:
        try:
            answer: NDArray[np.float32] = remote.fetch()
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError):
            # Its worker died before it had answered: the coordinator gives the step to another one. Whether there
            # is any, and whether the servers live, the training thread finds out.
            time.sleep(RETRY_SECONDS)
        else:
            return answer


def _worker_step(
    chief: Coordinated, model: Any, optimizer: Any, objective: Objective, spec: JobSpec
) -> Callable[..., Any]:
    """One step in a worker: float32 [3], its mean loss, its metric sum and the worker's number."""
    import tensorflow as tf

    summed = spec.training.aggregation.method == "sum"
    seeds = {id(v): tf.constant(v.numpy()) for v in model.non_trainable_variables if is_seed(v)}

    def replica(features: Any, targets: Any, number: Any) -> Any:
        weights, state = [kept.read() for kept in chief.weights], [kept.read() for kept in chief.state]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(weights)
            outputs, after = model.stateless_call(
                weights, _full_state(model, state, seeds, number), features, training=True
            )
            losses, metrics = objective.values(targets, outputs)
            total = tf.reduce_sum(losses)
            loss = total / spec.samples_per_step
        gradients = tape.gradient(total if summed else loss, weights)
        parts = [part for kept, each in zip(chief.weights, gradients, strict=True) for part in kept.split(each)]
        optimizer.apply(parts, chief.parts)
        _add_changes(chief, model, state, after)
        return tf.stack([loss, tf.reduce_sum(metrics)])

    def step(data: Any, rows: Any, number: Any) -> Any:
        with tf.device("/device:CPU:0"):
            features, targets, scale, worker = data.get_next()
            batch = tf.cast(tf.gather(features, rows), tf.float32) * scale
            labels = tf.gather(targets, rows)
            tf.io.write_file(STEP, tf.strings.as_string(number + 1))
        results = chief.strategy.run(replica, args=(batch, labels, number))
        return tf.concat([results, [worker]], 0)

    return tf.function(step, autograph=False)  # type: ignore[no-any-return]


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
    for kept, old, new in zip(chief.state, before, changed, strict=True):
        for part, change in zip(kept.parts, kept.split(new - old), strict=True):
            part.assign_add(change)
