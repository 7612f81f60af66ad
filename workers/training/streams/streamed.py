"""Steps and evaluation on data that is read from disk meanwhile; the maths is that of steps.py and evaluation.py."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.contract.spec import JobSpec
from workers.training.distribution import Distribution
from workers.training.evaluation import SMALLEST_BATCH, Evaluator
from workers.training.objective import Objective
from workers.training.steps import Hints, Outcome, Steps
from workers.training.streams.streaming import Stream, Walk, cut, put

if TYPE_CHECKING:
    from numpy.typing import NDArray

CALL_BYTES = 8 * 2**20
"""Of examples that go to the devices in one call, at most, unless a single step has more."""
WINDOW_BYTES = 32 * 2**20
MOST_STEPS = 64
Shares = list[tuple["NDArray[Any]", "NDArray[Any]"]]
"""Features and targets of one step, for each replica of this process: [micro_batches * share, ...]."""


class StreamedSteps(Steps):
    """Steps whose examples come from disk; a thread reads ahead."""

    def __init__(
        self, distribution: Distribution, model: Any, optimizer: Any, objective: Objective, spec: JobSpec
    ) -> None:
        super().__init__(distribution, model, optimizer, objective, spec)
        self._epoch = 0
        self._orders: dict[int, Any] = {}

    def place(self, split: Any, scale: float) -> None:
        """`split` is a Stream; nothing is read yet."""
        local = self._distribution.local
        self._scale = self._distribution.spread([np.float32(scale)] * len(local))
        walk = walk_of(split, self._spec, self._distribution)
        first = 0 if walk.endless else local[0]
        share = self._spec.training.global_batch // self._distribution.replicas
        parts = [slice((first + index) * share, (first + index + 1) * share) for index in range(len(local))]
        self._ahead = Ahead(walk, parts, self._spec.micro_batches)

    def begin_epoch(self, epoch: int) -> None:
        """The reader goes on by itself where it stands before that epoch."""
        self._epoch = epoch

    def run(self, start: int, count: int, hints: Hints, fence: int) -> Outcome:
        """As Steps.run, in several calls where the examples of one would be too many."""
        position = self._epoch * self._spec.steps_per_epoch + start
        outcomes, waited, end = [], self._ahead.waited, position + count
        while position < end:
            steps = self._ahead.some(position, end, most_bytes=CALL_BYTES, most=MOST_STEPS)
            outcomes.append(self._run(steps, hints))
            position += len(steps)
        losses = np.concatenate([each.losses for each in outcomes])
        metrics = np.concatenate([each.metrics for each in outcomes])
        return Outcome(losses, metrics, outcomes[-1].hints, waited=self._ahead.waited - waited)

    def _run(self, steps: list[Shares], hints: Hints) -> Outcome:
        import tensorflow as tf

        if self._call is None:
            self._call = tf.function(self._walk, autograph=False)
        # Of two sizes only, since each is compiled.
        room = 1 if len(steps) == 1 else room_for(steps[0], CALL_BYTES, MOST_STEPS)
        rows, replicas = room * len(steps[0][0][1]), range(len(steps[0]))
        columns = [[_filled([step[replica][part] for step in steps], rows) for replica in replicas] for part in (0, 1)]
        data = (*(self._distribution.spread(column) for column in columns), self._scale)
        answer = self._call(
            data,
            self._order_of(room),
            tf.constant(0),
            tf.constant(len(steps)),
            tf.constant(hints, tf.float32),
        ).numpy()
        return self._outcome(answer, len(steps))

    def _order_of(self, room: int) -> Any:
        if room not in self._orders:
            share = self._spec.training.global_batch // self._distribution.replicas
            shape = (room, self._spec.micro_batches, share)
            order = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            self._orders[room] = self._distribution.spread([order] * len(self._distribution.local))
        return self._orders[room]


def walk_of(stream: Stream, spec: JobSpec, distribution: Distribution) -> Walk:
    """How this process goes through the training data, as `training.sharding` says."""
    training, pieces = spec.training, stream.source.pieces
    alone = training.sharding in {"file", "off"}
    worker = distribution.local[0] // len(distribution.local) if alone else 0
    files = sorted({piece.file for piece in pieces})
    own = set(files[worker :: distribution.processes]) if training.sharding == "file" else set(files)
    share = training.global_batch // distribution.replicas
    options: Any = spec.options_of("dataset")
    batch = share * len(distribution.local) if alone else training.global_batch
    window = options.shuffle_buffer or min(100_000, WINDOW_BYTES // max(1, stream.source.row_bytes))
    return Walk(
        stream=stream,
        pieces=tuple(index for index, piece in enumerate(pieces) if piece.file in own),
        batch=batch,
        per_pass=spec.steps_per_epoch * spec.micro_batches,
        endless=alone,
        seed=training.seed,
        worker=worker,
        shuffle=training.shuffle,
        window=max(batch, window) if training.shuffle else batch,
        deterministic=training.deterministic,
    )


class Ahead:
    """The steps of a walk by their numbers, read ahead in a thread for as long as one follows the other."""

    def __init__(self, walk: Walk, parts: list[slice], micro_batches: int = 1) -> None:
        """`parts` of each batch are what the replicas of this process get of it."""
        self._walk, self._parts, self._micro_batches = walk, parts, micro_batches
        self._reader: Reader | None = None
        self._next = 0
        self.waited = 0.0
        """Seconds that were spent waiting for the disk, so far."""

    def some(self, position: int, end: int, *, most_bytes: int, most: int) -> list[Shares]:
        """The steps from `position` on, one at least: fewer than up to `end` where they would be too many."""
        steps = [self.take(position)]
        room = min(end - position, room_for(steps[0], most_bytes, most))
        return steps + [self.take(position + number) for number in range(1, room)]

    def take(self, position: int) -> Shares:
        """One step. Raises what reading it raised."""
        began = time.monotonic()
        if self._reader is None or position != self._next:
            if self._reader is not None:
                self._reader.close()
            self._reader = Reader(lambda: self._shares(position))
        self._next = position + 1
        found = self._reader.take()
        self.waited += time.monotonic() - began
        return found

    def _shares(self, position: int) -> Iterator[Shares]:
        decode, batches = self._walk.stream.source.decode, self._walk.batches(position * self._micro_batches)
        while True:
            step = [next(batches) for _ in range(self._micro_batches)]
            yield [_together([decode((rows[0][part], rows[1][part])) for rows in step]) for part in self._parts]


def room_for(step: Shares, most_bytes: int, most: int) -> int:
    """How many such steps are at most so many bytes; one always fits."""
    size = sum(features.nbytes + targets.nbytes for features, targets in step)
    return max(1, min(most, most_bytes // max(1, size)))


class Reader:
    """Runs an iterator ahead in a thread of its own, by a few steps."""

    def __init__(self, make: Callable[[], Iterator[Shares]], ahead: int = 8) -> None:
        self._ready: queue.Queue[Shares | BaseException] = queue.Queue(ahead)
        self._over = threading.Event()
        threading.Thread(target=self._read, args=(make,), name="reader", daemon=True).start()

    def take(self) -> Shares:
        """The next step's examples. Raises what reading them raised."""
        found = self._ready.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        """Nobody takes any more."""
        self._over.set()

    def _read(self, make: Callable[[], Iterator[Shares]]) -> None:
        try:
            for shares in make():
                put(self._ready, shares, self._over)
                if self._over.is_set():
                    return
        except BaseException as error:  # noqa: BLE001  raised again where the examples are taken
            put(self._ready, error, self._over)


class StreamedEvaluator(Evaluator):
    """Exact evaluation of a stream: every process reads it and takes its replicas' rows of each chunk."""

    def __init__(
        self, distribution: Distribution, model: Any, objective: Objective, *, split: Any, scale: float, batch: int
    ) -> None:
        """As Evaluator; `split` is a Stream."""
        import tensorflow as tf

        self._distribution, self._model, self._objective = distribution, model, objective
        self._stream: Stream = split
        self._size = max(batch, SMALLEST_BATCH)
        self._chunks = 1
        self._scale = distribution.spread([np.float32(scale)] * len(distribution.local))
        self._call = tf.function(self._walk, autograph=False)

    def run(self) -> dict[str, float]:
        """Mean loss and metric over all rows, by name."""
        sums = np.zeros(3)
        blocks = self._stream.blocks(range(len(self._stream.source.pieces)))
        for features, targets in cut(blocks, self._size * self._distribution.replicas, rest=True):
            parts = [slice(replica * self._size, (replica + 1) * self._size) for replica in self._distribution.local]
            shares = [self._stream.source.decode((features[part], targets[part])) for part in parts]
            masks = [(np.arange(self._size) < len(share[1])).astype(np.float32)[None] for share in shares]
            columns = [[_filled([share[part]], self._size)[None] for share in shares] for part in (0, 1)]
            arguments = [self._distribution.spread(values) for values in (*columns, masks)]
            sums += self._call(*arguments, self._scale).numpy()
        return self._objective.named(float(sums[0] / sums[2]), float(sums[1] / sums[2]))


def _together(parts: list[tuple[NDArray[Any], NDArray[Any]]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Micro-batches one after the other."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([features for features, _ in parts]), np.concatenate([targets for _, targets in parts])


def _filled(parts: list[NDArray[Any]], length: int) -> NDArray[Any]:
    """The parts one after the other, with zeros up to `length` rows."""
    rows = sum(len(part) for part in parts)
    if rows == length:
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.concatenate([*parts, np.zeros((length - rows, *parts[0].shape[1:]), parts[0].dtype)])
