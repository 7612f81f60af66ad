"""The order of data that is read from disk while it is trained on: the same for the same seed, whoever asks.

Rows are numbered as they lie in the files. Some are held out for validation, by number; the others are walked through
piece by piece (files, row groups, pictures), the pieces in an order decided by seed and pass, and shuffled within a
bounded window. So any position can be found again without having kept anything.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from workers.training.arrays import DataError
from workers.training.data import HELD_OUT

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rows = tuple[Any, Any]
"""Features [rows, ...] and targets [rows, ...], as a source reads them and not yet decoded."""
HELD_BLOCK = 1_024
READERS = 4
READ_AHEAD = 8


class Piece(NamedTuple):
    """What is read in one go: `rows` of the file with the number `file`."""

    file: int
    rows: int


class Source(Protocol):
    """Files of one kind, on this host. All methods may raise DataError."""

    pieces: Sequence[Piece]
    scale: float
    row_bytes: int
    """Of one row as it waits in the window."""

    def read(self, piece: int) -> Iterator[Rows]:
        """The rows of one piece in their order, block by block."""

    def decode(self, rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
        """What the model is given of them, as in Arrays."""


class HeldOut:
    """Which rows are held out: exactly `count` of `samples`, drawn within each HELD_BLOCK so that none need a list."""

    def __init__(self, samples: int, count: int) -> None:
        self._samples, self._count = samples, count

    def mask(self, first: int, rows: int) -> NDArray[np.bool_]:
        """Of the rows from number `first` on: true where held out."""
        if not self._count:
            return np.zeros(rows, bool)
        blocks = range(first // HELD_BLOCK, (first + rows - 1) // HELD_BLOCK + 1)
        found = np.concatenate([self._block(block) for block in blocks])
        start = first - blocks.start * HELD_BLOCK
        return found[start : start + rows]

    def _block(self, block: int) -> NDArray[np.bool_]:
        begin, end = block * HELD_BLOCK, min((block + 1) * HELD_BLOCK, self._samples)
        quota = end * self._count // self._samples - begin * self._count // self._samples
        mask = np.zeros(end - begin, bool)
        mask[np.random.default_rng((HELD_OUT, block)).permutation(end - begin)[:quota]] = True
        return mask


@dataclasses.dataclass(frozen=True)
class Stream:
    """A dataset on disk, and the part of it that is meant: the rows held out or the others."""

    source: Source
    held_out: HeldOut
    samples: int
    validation: bool = False

    def __len__(self) -> int:
        return self.samples

    @property
    def firsts(self) -> list[int]:
        """The number of the first row of each piece."""
        firsts = np.cumsum([0, *(piece.rows for piece in self.source.pieces)])
        return [int(first) for first in firsts[:-1]]

    def blocks(self, pieces: Sequence[int], *, deterministic: bool = True) -> Iterator[Rows]:
        """The rows of these pieces, in the order given unless others come first and `deterministic` is false."""
        if deterministic or len(pieces) < 2:
            firsts = self.firsts
            for piece in pieces:
                yield from self._piece(piece, firsts[piece])
        else:
            yield from self._race(pieces)

    def count(self, pieces: Sequence[int]) -> int:
        """Rows that `blocks` gives for these pieces."""
        firsts = self.firsts
        masks = (self.held_out.mask(firsts[piece], self.source.pieces[piece].rows) for piece in pieces)
        return sum(int((mask == self.validation).sum()) for mask in masks)

    def _piece(self, piece: int, first: int) -> Iterator[Rows]:
        for features, targets in self.source.read(piece):
            wanted = self.held_out.mask(first, len(targets)) == self.validation
            first += len(targets)
            yield features[wanted], targets[wanted]

    def _race(self, pieces: Sequence[int]) -> Iterator[Rows]:
        """Several readers, whoever is first."""
        firsts, waiting = self.firsts, iter(pieces)
        ready: queue.Queue[Rows | BaseException | None] = queue.Queue(READ_AHEAD)
        lock, over = threading.Lock(), threading.Event()

        def read() -> None:
            try:
                while not over.is_set():
                    with lock:
                        piece = next(waiting, None)
                    if piece is None:
                        break
                    for rows in self._piece(piece, firsts[piece]):
                        put(ready, rows, over)
                put(ready, None, over)
            except BaseException as error:  # noqa: BLE001  raised again by whoever asked
                put(ready, error, over)

        readers = min(READERS, len(pieces))
        for _ in range(readers):
            threading.Thread(target=read, daemon=True).start()
        try:
            while readers:
                found = ready.get()
                if isinstance(found, BaseException):
                    raise found
                if found is None:
                    readers -= 1
                else:
                    yield found
        finally:
            over.set()


def put(target: queue.Queue[Any], item: Any, over: threading.Event) -> None:
    """Wait for room, but not for ever once nobody takes any more."""
    while not over.is_set():
        try:
            target.put(item, timeout=0.2)
        except queue.Full:
            continue
        return


@dataclasses.dataclass(frozen=True)
class Walk:
    """One worker's way through a stream, pass after pass.

    With `endless` a pass follows the last one within a batch; else each pass is an epoch of `per_pass` batches, and
    what is left of it is dropped. `pieces` are those that the worker reads.
    """

    stream: Stream
    pieces: tuple[int, ...]
    batch: int
    per_pass: int
    endless: bool
    seed: int
    worker: int
    """0 where all workers walk the same way."""
    shuffle: bool
    window: int
    deterministic: bool = True

    def batches(self, position: int) -> Iterator[Rows]:
        """Raw batches for ever, from the one with the number `position` on."""
        if not self.endless:
            number, within = divmod(position, self.per_pass)
            while True:
                rows = cut(self._rows(number, within * self.batch), self.batch)
                for _, batch in zip(range(self.per_pass - within), rows, strict=False):
                    yield batch
                number, within = number + 1, 0
        rows_of_a_pass = self.stream.count(self.pieces)
        if not rows_of_a_pass:
            raise DataError("A worker's own files hold no training examples; set training.sharding to data.")
        number, skip = divmod(position * self.batch, rows_of_a_pass)
        yield from cut(self._on_and_on(number, skip), self.batch)

    def _on_and_on(self, number: int, skip: int) -> Iterator[Rows]:
        while True:
            yield from self._rows(number, skip)
            number, skip = number + 1, 0

    def _rows(self, number: int, skip: int) -> Iterator[Rows]:
        """All rows of a pass but for the first `skip`, shuffled within windows."""
        pieces = np.array(self.pieces)
        if self.shuffle:
            pieces = np.random.default_rng((self.seed, number, self.worker, 0)).permutation(pieces)
        blocks = self.stream.blocks([int(piece) for piece in pieces], deterministic=self.deterministic)
        for index, (features, targets) in enumerate(cut(blocks, self.window, rest=True)):
            if skip >= len(targets):
                skip -= len(targets)
                continue
            order = np.arange(len(targets))
            if self.shuffle:
                order = np.random.default_rng((self.seed, number, self.worker, index + 1)).permutation(len(targets))
            yield features[order[skip:]], targets[order[skip:]]
            skip = 0


def cut(blocks: Iterator[Rows], size: int, *, rest: bool = False) -> Iterator[Rows]:
    """The same rows, `size` at a time; with `rest` also the fewer ones at the end."""
    kept: list[Rows] = []
    count = 0
    for block in blocks:
        kept.append(block)
        count += len(block[1])
        if count < size:
            continue
        features, targets = _join(kept)
        cut = count - count % size
        for start in range(0, cut, size):
            yield features[start : start + size], targets[start : start + size]
        kept, count = [(features[cut:].copy(), targets[cut:].copy())], count - cut
    if rest and count:
        yield _join(kept)


def _join(blocks: list[Rows]) -> Rows:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate([features for features, _ in blocks]), np.concatenate([targets for _, targets in blocks])
