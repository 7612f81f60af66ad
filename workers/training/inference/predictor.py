"""Predictions of every example in the data's order: replicas share each block of rows, and all get the whole back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.training.data import Split
from workers.training.distribution import Distribution
from workers.training.evaluation import SMALLEST_BATCH, padded
from workers.training.objective import Objective
from workers.training.streams.streaming import Rows, Stream, cut

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Predictor:
    """A compiled call for blocks of one size; of the last one what was filled up is cut off again."""

    def __init__(self, distribution: Distribution, model: Any, objective: Objective, *, scale: float) -> None:
        self._distribution, self._model, self._objective = distribution, model, objective
        self._scale = self._scales(scale)
        self._call = self._compiled()

    def run(self, split: Split | Stream, batch: int) -> Iterator[NDArray[np.float32]]:
        """Block after block, float32 [rows, width]: what `Objective.answers` says of each row, then its targets.

        `batch` is what a replica trains on at once: it may predict as many, or SMALLEST_BATCH. Every process reads the
        rows and decodes its replicas' share; its answers stand in a block of zeros, and the blocks are summed.
        """
        replicas = self._distribution.replicas
        size = min(max(batch, SMALLEST_BATCH), max(1, math.ceil(len(split) / replicas)))
        decode = split.source.decode if isinstance(split, Stream) else as_it_is
        for features, targets in blocks_of(split, size * replicas):
            parts = [slice(replica * size, (replica + 1) * size) for replica in self._distribution.local]
            shares = [decode((features[part], targets[part])) for part in parts]
            columns = [[padded(share[part], size) for share in shares] for part in (0, 1)]
            yield self._answers(columns)[: len(targets)]

    def _scales(self, scale: float) -> Any:
        return self._distribution.spread([np.float32(scale)] * len(self._distribution.local))

    def _compiled(self) -> Callable[..., Any]:
        import tensorflow as tf

        compiled: Callable[..., Any] = tf.function(self._block, autograph=False)
        return compiled

    def _answers(self, columns: list[list[NDArray[Any]]]) -> NDArray[np.float32]:
        """Of one whole block, from the features and the targets of each replica of this process."""
        answers: NDArray[np.float32] = self._call(*map(self._distribution.spread, columns), self._scale).numpy()
        return answers

    def _block(self, features: Any, targets: Any, scale: Any) -> Any:
        import tensorflow as tf

        spread = self._distribution
        own = tf.concat(list(spread.local_values(spread.run(self._step, (features, targets, scale)))), 0)
        if spread.processes == 1:
            return own
        size = own.shape[0] // len(spread.local)
        before, after = spread.local[0] * size, (spread.replicas - 1 - spread.local[-1]) * size
        block = tf.pad(own, [[before, after], [0, 0]])
        return tf.reshape(spread.sum_over_processes(tf.reshape(block, [-1])), block.shape)

    def _step(self, features: Any, targets: Any, scale: Any) -> Any:
        inputs, _ = self._objective.prepare(features, targets, scale)
        return beside(self._objective.answers(self._model(inputs, training=False)), targets)


def beside(answers: Any, targets: Any) -> Any:
    """Float32 [rows, width]: the answers and then the targets of each row."""
    import tensorflow as tf

    rows = targets.shape[0]
    return tf.concat([tf.reshape(answers, [rows, -1]), tf.reshape(tf.cast(targets, tf.float32), [rows, -1])], 1)


def blocks_of(split: Split | Stream, rows: int) -> Iterator[Rows]:
    """All rows in the data's order, `rows` at a time and the fewer ones last; those of a stream not yet decoded."""
    if isinstance(split, Stream):
        yield from cut(split.blocks(range(len(split.source.pieces))), rows, rest=True)
        return
    for start in range(0, len(split), rows):
        yield split.features[start : start + rows], split.targets[start : start + rows]


def as_it_is(rows: Rows) -> Rows:
    """What is in memory needs no decoding."""
    return rows
