"""The order of data that stays on disk: each row once a pass, found again from any position, shared as asked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from workers.training.data import worker_order
from workers.training.streams.streamed import Ahead
from workers.training.streams.streaming import HeldOut, Piece, Rows, Stream, Walk


class Numbers:
    """Rows that are their own number, in three files."""

    scale = 1.0
    row_bytes = 8

    def __init__(self) -> None:
        self.pieces = [Piece(0, 400), Piece(1, 350), Piece(2, 250)]

    def read(self, piece: int) -> Iterator[Rows]:
        first = sum(each.rows for each in self.pieces[:piece])
        numbers = np.arange(first, first + self.pieces[piece].rows)
        for block in np.array_split(numbers, 7):
            yield block, block

    def decode(self, rows: Rows) -> Rows:
        return rows


HELD = HeldOut(1000, 200)
STREAM = Stream(Numbers(), HELD, 800)
WALK = Walk(
    stream=STREAM, pieces=(0, 1, 2), batch=64, per_pass=12, endless=False, seed=1, worker=0, shuffle=True, window=150
)


def seen(walk: Walk, first: int, count: int) -> list[list[int]]:
    return [features.tolist() for features, _ in itertools.islice(walk.batches(first), count)]


def flat(batches: list[list[int]]) -> list[int]:
    return list(itertools.chain.from_iterable(batches))


def test_it_holds_out_exactly_as_many_whatever_is_asked_at_once() -> None:
    held = HeldOut(10_000, 1_234)
    whole = held.mask(0, 10_000)
    assert whole.sum() == 1_234
    parts = [held.mask(first, 500) for first in range(0, 10_000, 500)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert not HeldOut(10, 0).mask(0, 10).any()
    # Every fifth row would be of one kind where rows take turns.
    assert len({int(row) % 10 for row in np.flatnonzero(whole)}) == 10


def test_it_gives_each_row_to_training_or_validation_once() -> None:
    training = [int(row) for rows, _ in STREAM.blocks(range(3)) for row in rows]
    validation = [int(row) for rows, _ in replace(STREAM, validation=True).blocks(range(3)) for row in rows]
    assert (len(training), len(validation)) == (800, 200)
    assert sorted(training + validation) == list(range(1000))
    assert STREAM.count((1,)) == sum(400 <= row < 750 for row in training)


def test_it_walks_through_an_epoch_in_an_order_of_seed_and_epoch() -> None:
    first, second = seen(WALK, 0, 12), seen(WALK, 12, 12)
    rows = [row for batch in first for row in batch]
    assert len(set(rows)) == len(rows) == 768
    assert not HELD.mask(0, 1000)[rows].any()
    assert rows != sorted(rows)
    assert first != second
    assert first == seen(WALK, 0, 12)
    assert first != seen(replace(WALK, seed=2), 0, 12)
    unshuffled = flat(seen(replace(WALK, shuffle=False), 0, 12))
    assert unshuffled == sorted(unshuffled)


@pytest.mark.parametrize("endless", [True, False])
@pytest.mark.parametrize("position", [1, 5, 11, 12, 17, 30])
def test_it_goes_on_from_any_position_as_if_it_had_never_stopped(position: int, endless: bool) -> None:
    walk = replace(WALK, endless=endless)
    assert seen(walk, position, 20) == seen(walk, 0, position + 20)[position:]


def test_each_worker_walks_through_all_rows_in_an_order_of_its_own() -> None:
    one, two = (replace(WALK, endless=True, batch=32, worker=worker) for worker in (0, 1))
    rows = [flat(seen(walk, 0, 25)) for walk in (one, two)]
    assert sorted(rows[0]) == sorted(rows[1])
    assert len(set(rows[0])) == 800
    assert rows[0] != rows[1]


def test_a_worker_reads_its_own_files_only() -> None:
    walk = replace(WALK, endless=True, pieces=(1,), worker=1)
    assert all(400 <= row < 750 for batch in seen(walk, 0, 30) for row in batch)


def test_it_gives_each_row_once_also_in_whatever_order_is_ready_first() -> None:
    walk = replace(WALK, deterministic=False)
    rows = flat(seen(walk, 0, 12))
    assert len(set(rows)) == len(rows) == 768


def test_it_raises_what_a_reader_raised() -> None:
    class Torn(Numbers):
        def read(self, piece: int) -> Iterator[Rows]:
            if piece == 2:
                raise OSError("torn")
            yield from super().read(piece)

    for deterministic in (True, False):
        torn = replace(WALK, stream=replace(STREAM, source=Torn()), deterministic=deterministic)
        with pytest.raises(OSError, match="torn"):
            seen(torn, 0, 12)


def test_it_takes_steps_by_their_numbers_wherever_they_begin() -> None:
    batches = seen(WALK, 0, 24)
    ahead = Ahead(WALK, [slice(0, 32), slice(32, 64)], micro_batches=2)
    for position in (0, 1, 2, 5, 6, 3):
        shares = [features.tolist() for features, _ in ahead.take(position)]
        two = batches[2 * position : 2 * position + 2]
        assert shares == [[row for batch in two for row in batch[part]] for part in (slice(32), slice(32, 64))]
    assert ahead.waited > 0


def test_it_takes_no_more_steps_at_once_than_fit() -> None:
    ahead = Ahead(WALK, [slice(64)])
    of_a_step = 64 * 8 * 2
    for most_bytes, most, taken in ((3 * of_a_step, 64, 3), (1, 64, 1), (10**9, 2, 2), (10**9, 64, 9)):
        steps = ahead.some(3, 12, most_bytes=most_bytes, most=most)
        assert [features.tolist() for [(features, _)] in steps] == seen(WALK, 3, taken)


def test_a_worker_with_an_order_of_its_own_sees_every_sample_equally_often() -> None:
    training: Any = type("Training", (), {"seed": 3, "shuffle": True})
    # Four workers: an epoch of 6 steps is a quarter of a worker's pass of 24.
    epochs = [worker_order(96, training=training, worker=2, batch=4, first=epoch * 6, steps=6) for epoch in range(9)]
    first_pass, second_pass = np.concatenate(epochs[:4]), np.concatenate(epochs[4:8])
    assert len(set(first_pass)) == len(set(second_pass)) == 96
    assert not np.array_equal(first_pass, second_pass)
    straddling = worker_order(96, training=training, worker=2, batch=4, first=22, steps=4)
    assert np.array_equal(straddling, np.concatenate([epochs[3][16:], epochs[4][:8]]))
    other = worker_order(96, training=training, worker=1, batch=4, first=0, steps=6)
    assert not np.array_equal(other, epochs[0])
