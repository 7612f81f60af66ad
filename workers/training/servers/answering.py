"""What workers of parameter servers say of examples without learning from them: metrics, or predictions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.training.checkpointing.state import is_seed
from workers.training.evaluation import SMALLEST_BATCH, Evaluator, padded
from workers.training.inference.predictor import Predictor, as_it_is, beside, blocks_of
from workers.training.objective import Objective
from workers.training.servers.asynchronous import LOOK_SECONDS, fetched
from workers.training.servers.roll_call import Answers
from workers.training.servers.serving import INDEX
from workers.training.streams.streaming import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.data import Split
    from workers.training.servers.coordinated import Coordinated

AHEAD = 2
"""Blocks under way for each worker: one that it looks at, and one on its way."""
Look = Callable[[Any, Any, Any], Any]
"""From the outputs for a block, its targets and how many of its rows are meant, to float32 of any shape."""


class Blocks:
    """Deals blocks of examples out to the workers. One that was under way in a worker that died goes to another one."""

    def __init__(self, chief: Coordinated, model: Any, objective: Objective, *, scale: float, look: Look) -> None:
        import tensorflow as tf

        self._chief = chief
        self._call = tf.function(_looking(chief, model, objective, scale, look), autograph=False)
        self._ahead = AHEAD * chief.workers
        self._threads = ThreadPoolExecutor(self._ahead, "blocks")
        self._workers = [process.name for process in chief.servers if process.role == "worker"]
        self._answers = Answers(self._workers, "its examples")
        chief.welcome()

    def of(self, split: Split | Stream, size: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """How many rows each block of at most `size` has, and what its worker says of it; in the data's order.

        Raises PeerLost, or the error of a block that no other worker can mend.
        """
        from tensorflow.errors import OpError

        try:
            yield from self._dealt(_whole_blocks(split, size))
        except OpError:
            # TensorFlow says that somebody is gone before the roll call knows who.
            self._chief.roll_call.blame()
            raise

    def _dealt(
        self, blocks: Iterable[tuple[int, NDArray[Any], NDArray[Any]]]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        import tensorflow as tf

        under_way: deque[tuple[int, Future[list[Any]]]] = deque()
        for rows, features, targets in blocks:
            arguments = (tf.constant(features), tf.constant(targets), tf.constant(rows))
            remote = self._chief.coordinator.schedule(self._call, args=arguments)
            if not under_way:
                self._answers.ask()
            under_way.append((rows, self._threads.submit(fetched, remote)))
            if len(under_way) == self._ahead:
                yield self._first(under_way)
        while under_way:
            yield self._first(under_way)

    def _first(self, under_way: deque[tuple[int, Future[list[Any]]]]) -> tuple[int, NDArray[np.float32]]:
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
    """Exact evaluation: every block counts its own rows alone, whoever looks at it."""

    def __init__(
        self, chief: Coordinated, model: Any, objective: Objective, *, split: Any, scale: float, batch: int
    ) -> None:
        """As Evaluator; `split` may be a Stream."""
        self._objective, self._split = objective, split
        self._size = size_of(split, batch, chief.workers)
        self._blocks = Blocks(chief, model, objective, scale=scale, look=self._look)

    def run(self) -> dict[str, float]:
        """Mean loss and metric over all rows, by name."""
        sums = np.zeros(2)
        for _, said in self._blocks.of(self._split, self._size):
            sums += said
        loss, metric = sums / len(self._split)
        return self._objective.named(float(loss), float(metric))

    def _look(self, outputs: Any, targets: Any, rows: Any) -> Any:
        """Sums of loss and metric."""
        import tensorflow as tf

        return tf.stack([tf.reduce_sum(values[:rows]) for values in self._objective.values(targets, outputs)])


class CoordinatedPredictor(Predictor):
    """Predictions in the data's order, whichever worker they are of."""

    def __init__(self, chief: Coordinated, model: Any, objective: Objective, *, scale: float) -> None:
        self._workers, self._objective = chief.workers, objective
        self._blocks = Blocks(chief, model, objective, scale=scale, look=self._look)

    def run(self, split: Split | Stream, batch: int) -> Iterator[NDArray[np.float32]]:
        """As Predictor.run."""
        for rows, said in self._blocks.of(split, size_of(split, batch, self._workers)):
            yield said[:rows]

    def _look(self, outputs: Any, targets: Any, rows: Any) -> Any:
        return beside(self._objective.answers(outputs), targets)


def size_of(split: Split | Stream, batch: int, workers: int) -> int:
    """Rows of a block: as many as are trained on at once, or SMALLEST_BATCH, but something for each worker."""
    return min(max(batch, SMALLEST_BATCH), max(1, -(-len(split) // workers)))


def _whole_blocks(split: Split | Stream, size: int) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    """Rows, features and targets, filled up to `size`: another shape would be traced again."""
    decode = split.source.decode if isinstance(split, Stream) else as_it_is
    for features, targets in blocks_of(split, size):
        first, second = decode((features, targets))
        yield len(targets), padded(first, size), padded(second, size)


def _looking(chief: Coordinated, model: Any, objective: Objective, scale: float, look: Look) -> Callable[..., Any]:
    """In a worker: its own number, and what there is to say of a block with the weights as the servers have them."""
    import tensorflow as tf

    seeds = {id(v): tf.constant(v.numpy()) for v in model.non_trainable_variables if is_seed(v)}

    def replica(features: Any, targets: Any, rows: Any) -> Any:
        values = chief.read([*chief.weights, *chief.statistics])
        weights, kept = values[: len(chief.weights)], iter(values[len(chief.weights) :])
        state = [seeds[id(v)] if id(v) in seeds else next(kept) for v in model.non_trainable_variables]
        inputs, wanted = objective.prepare(features, targets, tf.constant(scale, tf.float32))
        outputs, _ = model.stateless_call(weights, state, inputs, training=False)
        return look(outputs, wanted, rows)

    def looking(features: Any, targets: Any, rows: Any) -> Any:
        with tf.device("/device:CPU:0"):
            number = tf.strings.to_number(tf.io.read_file(INDEX))
        return number, chief.strategy.run(replica, args=(features, targets, rows))

    return looking
