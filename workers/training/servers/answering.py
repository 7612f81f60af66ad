"""What workers of parameter servers say of examples without learning from them: metrics, or predictions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.training.checkpointing.state import is_seed
from workers.training.evaluation import SMALLEST_BATCH, Evaluator, padded
from workers.training.inference.predictor import Predictor, as_it_is, beside, blocks_of
from workers.training.objective import Objective
from workers.training.servers.asynchronous import LOOK_SECONDS, fetched
from workers.training.servers.feeding import CLOSURE_BYTES, Kinds, kinds_of, unpacked
from workers.training.servers.roll_call import Answers
from workers.training.servers.serving import INDEX
from workers.training.streams.streamed import room_for
from workers.training.streams.streaming import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.data import Split
    from workers.training.servers.coordinated import Coordinated

AHEAD = 2
"""Blocks under way for each worker: one that it looks at, and one on its way."""
Look = Callable[[Any, Any, Any], Any]
"""From a chunk's outputs, its targets and how many of its rows are meant, to float32 of any shape."""
Chunk = tuple["NDArray[Any]", "NDArray[Any]"]
Said = tuple[int, "NDArray[np.float32]"]
"""The rows of a block, and what its worker says of each of its chunks."""


class Blocks:
    """Deals blocks of examples out to the workers. One that was under way in a worker that died goes to another one.

    A block is several chunks where they are small, so that the way to a worker and back is paid for once.
    """

    def __init__(self, chief: Coordinated, model: Any, objective: Objective, *, scale: float, look: Look) -> None:
        self._chief = chief
        self._replica = _replica(chief, model, objective, scale, look)
        self._ahead = AHEAD * chief.workers
        self._threads = ThreadPoolExecutor(self._ahead, "blocks")
        self._workers = [process.name for process in chief.servers if process.role == "worker"]
        self._answers = Answers(self._workers, "its examples")
        chief.welcome()

    def of(self, split: Split | Stream, batch: int) -> Iterator[Said]:
        """Block after block, in the data's order.

        `batch` is what is trained on at once: a chunk has as many rows, or SMALLEST_BATCH. Raises PeerLost, or the
        error of a block that no other worker can mend.
        """
        from tensorflow.errors import OpError

        size = min(max(batch, SMALLEST_BATCH), max(1, -(-len(split) // self._chief.workers)))
        try:
            yield from self._dealt(split, size)
        except OpError:
            # TensorFlow says that somebody is gone before the roll call knows who.
            self._chief.roll_call.blame()
            raise

    def _dealt(self, split: Split | Stream, size: int) -> Iterator[Said]:
        import tensorflow as tf

        under_way: deque[tuple[int, Future[Any]]] = deque()
        call: Any = None
        for rows, chunks in _blocks(split, size, most=-(-len(split) // (size * self._ahead))):
            call = call or tf.function(_looking(self._chief, self._replica, kinds_of(chunks[0])), autograph=False)
            brought = [b"".join(chunk[part].tobytes() for chunk in chunks) for part in (0, 1)]
            remote = self._chief.coordinator.schedule(call, args=(tf.constant(rows), *map(tf.constant, brought)))
            if not under_way:
                self._answers.ask()
            under_way.append((rows, self._threads.submit(fetched, remote)))
            if len(under_way) == self._ahead:
                yield self._first(under_way)
        while under_way:
            yield self._first(under_way)

    def _first(self, under_way: deque[tuple[int, Future[Any]]]) -> Said:
        rows, future = under_way.popleft()
        while True:
            try:
                number, said = future.result(LOOK_SECONDS)
            except TimeoutError:
                self._chief.roll_call.check()
                self._answers.check(self._chief.roll_call.gone)
                self._chief.coordinator.done()  # raises what ended the blocks, if anything did
            else:
                self._answers.note(self._workers[int(number)])
                return rows, said


class CoordinatedEvaluator(Evaluator):
    """Exact evaluation: every row counts once, whoever looks at it."""

    def __init__(
        self, chief: Coordinated, model: Any, objective: Objective, *, split: Any, scale: float, batch: int
    ) -> None:
        """As Evaluator; `split` may be a Stream."""
        self._objective, self._split, self._batch = objective, split, batch
        self._blocks = Blocks(chief, model, objective, scale=scale, look=self._look)

    def run(self) -> dict[str, float]:
        """Mean loss and metric over all rows, by name."""
        sums = np.zeros(2)
        for _, said in self._blocks.of(self._split, self._batch):
            sums += said.sum(0, dtype=np.float64)
        loss, metric = sums / len(self._split)
        return self._objective.named(float(loss), float(metric))

    def _look(self, outputs: Any, targets: Any, rows: Any) -> Any:
        """Sums of loss and metric."""
        import tensorflow as tf

        return tf.stack([tf.reduce_sum(values[:rows]) for values in self._objective.values(targets, outputs)])


class CoordinatedPredictor(Predictor):
    """Predictions in the data's order, whichever worker they are of."""

    def __init__(self, chief: Coordinated, model: Any, objective: Objective, *, scale: float) -> None:
        self._objective = objective
        self._blocks = Blocks(chief, model, objective, scale=scale, look=self._look)

    def run(self, split: Split | Stream, batch: int) -> Iterator[NDArray[np.float32]]:
        """As Predictor.run."""
        for rows, said in self._blocks.of(split, batch):
            yield said.reshape(-1, said.shape[-1])[:rows]

    def _look(self, outputs: Any, targets: Any, rows: Any) -> Any:
        return beside(self._objective.answers(outputs), targets)


def _blocks(split: Split | Stream, size: int, *, most: int) -> Iterator[tuple[int, list[Chunk]]]:
    """How many rows each block has, and its chunks, `most` of them or CLOSURE_BYTES."""
    rows, chunks = 0, []
    for count, chunk in _chunks(split, size):
        rows += count
        chunks.append(chunk)
        if len(chunks) == room_for([chunk], CLOSURE_BYTES, most):
            yield rows, chunks
            rows, chunks = 0, []
    if chunks:
        yield rows, chunks


def _chunks(split: Split | Stream, size: int) -> Iterator[tuple[int, Chunk]]:
    """Features and targets, filled up to `size` rows."""
    decode = split.source.decode if isinstance(split, Stream) else as_it_is
    for rows in blocks_of(split, size):
        features, targets = decode(rows)
        yield len(targets), (padded(features, size), padded(targets, size))


def _looking(chief: Coordinated, replica: Callable[..., Any], kinds: Kinds) -> Callable[..., Any]:
    """In a worker: its own number, and what there is to say of each chunk of a block."""
    import tensorflow as tf

    def looking(rows: Any, *brought: Any) -> Any:
        with tf.device("/device:CPU:0"):
            number = tf.strings.to_number(tf.io.read_file(INDEX))
            features, targets = unpacked(brought, kinds)
        return number, chief.strategy.run(replica, args=(features, targets, rows))

    return looking


def _replica(chief: Coordinated, model: Any, objective: Objective, scale: float, look: Look) -> Callable[..., Any]:
    """What `look` says of each chunk, with the weights as the servers have them."""
    import tensorflow as tf

    seeds = {id(v): tf.constant(v.numpy()) for v in model.non_trainable_variables if is_seed(v)}

    def replica(features: Any, targets: Any, rows: Any) -> Any:
        values = chief.read([*chief.weights, *chief.statistics])
        weights, kept = values[: len(chief.weights)], iter(values[len(chief.weights) :])
        state = [seeds[id(v)] if id(v) in seeds else next(kept) for v in model.non_trainable_variables]

        def body(index: Any, results: Any) -> tuple[Any, Any]:
            inputs, wanted = objective.prepare(features[index], targets[index], tf.constant(scale, tf.float32))
            outputs, _ = model.stateless_call(weights, state, inputs, training=False)
            size = features.shape[1]
            meant = tf.clip_by_value(rows - index * size, 0, size)
            return index + 1, results.write(index, look(outputs, wanted, meant))

        count = tf.shape(features)[0]
        results = tf.TensorArray(tf.float32, size=count)
        _, results = tf.while_loop(
            lambda index, _: index < count, body, (tf.constant(0), results), parallel_iterations=1
        )
        return results.stack()

    return replica
