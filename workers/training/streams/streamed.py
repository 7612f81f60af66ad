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
        self._next = -1
        self._reader: Reader | None = None
        self._orders: dict[int, Any] = {}

    def place(self, split: Any, scale: float) -> None:
        """`split` is a Stream; nothing is read yet."""
        self._stream: Stream = split
        self._scale = self._distribution.spread([np.float32(scale)] * len(self._distribution.local))
        self._walk_of = walk_of(split, self._spec, self._distribution)

    def begin_epoch(self, epoch: int) -> None:
        """The reader goes on by itself where it stands before that epoch."""
        self._epoch = epoch

    def run(self, start: int, count: int, hints: Hints, fence: int) -> Outcome:
        """As Steps.run, in several calls where the examples of one would be too many."""
        position = self._epoch * self._spec.steps_per_epoch + start
        if self._reader is None or position != self._next:
            self._begin_at(position)
        self._next = position + count
        outcomes, waited = [], 0.0
        while count:
            before = time.monotonic()
            steps = [self._take() for _ in range(min(count, self._capacity))]
            waited += time.monotonic() - before
            outcomes.append(self._run(steps, hints))
            count -= len(steps)
        losses = np.concatenate([each.losses for each in outcomes])
        metrics = np.concatenate([each.metrics for each in outcomes])
        return Outcome(losses, metrics, outcomes[-1].hints, waited=waited)

    def _begin_at(self, position: int) -> None:
        if self._reader is not None:
            self._reader.close()
        walk, local = self._walk_of, self._distribution.local
        first = 0 if walk.endless else local[0]
        share = self._spec.training.global_batch // self._distribution.replicas
        slices = [slice((first + index) * share, (first + index + 1) * share) for index in range(len(local))]
        micro_batches, decode = self._spec.micro_batches, self._stream.source.decode

        def shares() -> Iterator[Shares]:
            batches = walk.batches(position * micro_batches)
            while True:
                step = [next(batches) for _ in range(micro_batches)]
                yield [_together([decode((rows[0][part], rows[1][part])) for rows in step]) for part in slices]

        self._reader = Reader(shares)
        first_step = self._reader.peek()
        size = sum(features.nbytes + targets.nbytes for features, targets in first_step)
        self._capacity = max(1, min(MOST_STEPS, CALL_BYTES // max(1, size)))

    def _take(self) -> Shares:
        assert self._reader is not None
        return self._reader.take()

    def _run(self, steps: list[Shares], hints: Hints) -> Outcome:
        import tensorflow as tf

        if self._call is None:
            self._call = tf.function(self._walk, autograph=False)
        # Of two sizes only, since each is compiled.
        room = 1 if len(steps) == 1 else self._capacity
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


class Reader:
    """Runs an iterator ahead in a thread of its own, by a few steps."""

    def __init__(self, make: Callable[[], Iterator[Shares]], ahead: int = 8) -> None:
        self._ready: queue.Queue[Shares | BaseException] = queue.Queue(ahead)
        self._over = threading.Event()
        self._first: list[Shares] = []
        threading.Thread(target=self._read, args=(make,), name="reader", daemon=True).start()

    def take(self) -> Shares:
        """The next step's examples. Raises what reading them raised."""
        if self._first:
            return self._first.pop()
        found = self._ready.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def peek(self) -> Shares:
        """The next step's examples, which stay to be taken."""
        self._first = [self.take()]
        return self._first[0]

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
