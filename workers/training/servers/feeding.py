"""What workers of parameter servers train on: examples that lie in each of them, or that the chief sends along."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from workers.contract.spec import JobSpec
from workers.training.data import Split, epoch_order, replica_batches
from workers.training.streams.streamed import Ahead, walk_of
from workers.training.streams.streaming import Stream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from workers.training.servers.coordinated import Coordinated

CLOSURE_BYTES = 2**20
"""Of examples that one closure brings, at most, unless a single step has more."""
Examples = tuple[Any, Any]
"""Features and targets of one step, as they are stored."""


class Feed(Protocol):
    """Where the examples of a closure come from. Numbers of steps are counted within the epoch."""

    @property
    def waited(self) -> float:
        """Seconds that were spent waiting for data from disk, so far."""

    def place(self, split: Any, scale: float) -> tuple[Any, ...]:
        """What every worker is given once; nothing is under way."""

    def begin_epoch(self, epoch: int) -> None:
        """Decide the order of an epoch, counted from 0."""

    def take(self, start: int, count: int) -> tuple[int, tuple[bytes, ...]]:
        """For a closure of at most `count` steps from `start` on: how many it has, and what it brings.

        As bytes, which have the same shape however many steps they are: another one would be traced again.
        """

    def examples(self, given: tuple[Any, ...], brought: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Examples]]:
        """In a worker's graph: how many steps there are, and what tells the examples of one of them."""


class Held:
    """Every worker holds all examples; a closure brings the numbers of its own."""

    waited = 0.0

    def __init__(self, spec: JobSpec) -> None:
        self._training, self._share = spec.training, spec.samples_per_step
        self._rows: NDArray[np.int32]

    def place(self, split: Split, scale: float) -> tuple[Any, ...]:
        """The data itself."""
        import tensorflow as tf

        self._samples = len(split)
        return tf.constant(split.features), tf.constant(split.targets)

    def begin_epoch(self, epoch: int) -> None:
        """The order that the examples have on one device."""
        order = epoch_order(self._samples, seed=self._training.seed, epoch=epoch, shuffle=self._training.shuffle)
        self._rows = replica_batches(order, global_batch=self._share, replicas=1, replica=0)[:, 0]

    def take(self, start: int, count: int) -> tuple[int, tuple[bytes, ...]]:
        """The rows of each step."""
        return count, (self._rows[start : start + count].tobytes(),)

    def examples(self, given: tuple[Any, ...], brought: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Examples]]:
        """Picks the rows out of the data."""
        import tensorflow as tf

        features, targets = given
        rows = tf.reshape(tf.io.decode_raw(brought[0], tf.int32), [-1, self._share])
        return tf.shape(rows)[0], lambda index: (tf.gather(features, rows[index]), tf.gather(targets, rows[index]))


class Sent:
    """The chief alone reads from disk, in the order that a stream has on one device, and a closure brings its examples.

    So the files need not be where the workers are, and steps that another worker takes again are the same steps.
    """

    def __init__(self, chief: Coordinated, spec: JobSpec) -> None:
        self._chief, self._spec = chief, spec
        self._first = 0

    def place(self, split: Stream, scale: float) -> tuple[Any, ...]:
        """Nothing: it is read as it is used."""
        # A step is one worker's here, so that its examples are fewer than a global batch.
        share = self._spec.samples_per_step
        walk = dataclasses.replace(walk_of(split, self._spec, self._chief), batch=share)
        self._ahead = Ahead(walk, [slice(share)])
        return ()

    @property
    def waited(self) -> float:
        """Seconds that were spent waiting for data from disk, so far."""
        return self._ahead.waited

    def begin_epoch(self, epoch: int) -> None:
        """The reader goes on by itself where it stands before that epoch."""
        self._first = epoch * self._spec.steps_per_epoch

    def take(self, start: int, count: int) -> tuple[int, tuple[bytes, ...]]:
        """Features and targets of each step, fewer steps where they would be too many bytes."""
        first = self._first + start
        steps = [step for [step] in self._ahead.some(first, first + count, most_bytes=CLOSURE_BYTES, most=count)]
        self._kinds = kinds_of(steps[0])
        return len(steps), tuple(b"".join(step[part].tobytes() for step in steps) for part in (0, 1))

    def examples(self, given: tuple[Any, ...], brought: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Examples]]:
        """What was brought, step by step; to be called once some was taken."""
        import tensorflow as tf

        features, targets = unpacked(brought, self._kinds)
        return tf.shape(features)[0], lambda index: (features[index], targets[index])


Kinds = list[tuple[Any, tuple[int, ...]]]
"""The type and the shape of each array."""


def kinds_of(arrays: Iterable[NDArray[Any]]) -> Kinds:
    """What `unpacked` has to know of arrays that travel as bytes."""
    return [(array.dtype, array.shape) for array in arrays]


def unpacked(brought: tuple[Any, ...], kinds: Kinds) -> list[Any]:
    """In a worker's graph: for each array as many as were brought, one after the other."""
    import tensorflow as tf

    return [
        tf.reshape(tf.io.decode_raw(raw, kind), [-1, *shape]) for raw, (kind, shape) in zip(brought, kinds, strict=True)
    ]


def feed_of(chief: Coordinated, spec: JobSpec) -> Feed:
    """How the job's examples come to its workers."""
    return Held(spec) if spec.dataset_info.files is None else Sent(chief, spec)
