"""Exact evaluation: every sample counts once, under every strategy, however few there are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.training.data import Split
from workers.training.distribution import Distribution
from workers.training.objective import Objective

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALLEST_BATCH = 128


class Evaluator:
    """One split of the data on the devices, each replica holding its shard, padded and masked to equal lengths."""

    def __init__(
        self, distribution: Distribution, model: Any, objective: Objective, *, split: Split, scale: float, batch: int
    ) -> None:
        """`batch` is what a replica trains on at once: it may evaluate as many, or SMALLEST_BATCH."""
        import tensorflow as tf

        self._distribution = distribution
        self._model = model
        self._objective = objective
        shards = [shard_of(split, replica, distribution.replicas, batch) for replica in distribution.local]
        self._chunks = len(shards[0][0])
        self._arguments = [distribution.spread(parts) for parts in zip(*shards, strict=True)]
        self._arguments.append(distribution.spread([np.float32(scale)] * len(shards)))
        self._call = tf.function(self._walk, autograph=False)

    def run(self) -> dict[str, float]:
        """Mean loss and metric over all samples of the split, by name, and what follows from them."""
        sums = self._call(*self._arguments).numpy().astype(np.float64).reshape(3, -1).sum(axis=1)
        return self._objective.named(float(sums[0] / sums[2]), float(sums[1] / sums[2]))

    def _walk(self, *arguments: Any) -> Any:
        """Float32 [3 * chunks]: loss sums, metric sums, sample counts; summed over the job."""
        import tensorflow as tf

        def body(index: Any, results: Any) -> tuple[Any, Any]:
            sums = self._distribution.run(self._step, (*arguments, index))
            return index + 1, results.write(index, tf.add_n(list(self._distribution.local_values(sums))))

        results = tf.TensorArray(tf.float32, size=self._chunks, element_shape=[3])
        _, results = tf.while_loop(lambda index, _: index < self._chunks, body, (tf.constant(0), results))
        return self._distribution.sum_over_processes(tf.reshape(tf.transpose(results.stack()), [-1]))

    def _step(self, features: Any, targets: Any, mask: Any, scale: Any, index: Any) -> Any:
        import tensorflow as tf

        inputs, wanted = self._objective.prepare(features[index], targets[index], scale)
        losses, metrics = self._objective.values(wanted, self._model(inputs, training=False))
        counts = mask[index]
        # Not a product: padding may give NaN, and NaN times zero is NaN.
        zeros = tf.zeros_like(losses)
        kept = [tf.where(counts > 0, values, zeros) for values in (losses, metrics)]
        return tf.stack([tf.reduce_sum(kept[0]), tf.reduce_sum(kept[1]), tf.reduce_sum(counts)])


def shard_of(
    split: Split, replica: int, replicas: int, batch: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]:
    """Features, targets and mask (1 for a sample, 0 for padding), each [chunks, size, ...], alike for all replicas."""
    share = math.ceil(len(split) / replicas)
    size = min(share, max(batch, SMALLEST_BATCH))
    chunks = math.ceil(share / size)
    rows = slice(replica * share, (replica + 1) * share)
    mask = np.zeros(chunks * size, np.float32)
    mask[: len(split.features[rows])] = 1
    parts = [padded(values[rows], chunks * size) for values in (split.features, split.targets)]
    features, targets = (part.reshape(chunks, size, *part.shape[1:]) for part in parts)
    return features, targets, mask.reshape(chunks, size)


def padded(values: NDArray[Any], length: int) -> NDArray[Any]:
    """The rows, with zeros up to `length` of them."""
    return np.pad(values, [(0, length - len(values)), *[(0, 0)] * (values.ndim - 1)])
