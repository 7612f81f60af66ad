from __future__ import annotations

import itertools
import math

from webapp.jobs.figures import SPARK_LENGTH, extend_spark, finite, jsonable, thin


def test_it_says_in_words_what_json_cannot() -> None:
    assert [jsonable(v) for v in (1.5, math.nan, math.inf, -math.inf)] == [1.5, "NaN", "Infinity", "-Infinity"]
    assert [finite(v) for v in (1.5, math.nan, math.inf)] == [1.5, None, None]


def test_it_keeps_a_long_loss_short_even_and_ending_in_the_newest() -> None:
    spark: list = []
    for start in range(1, 10_001, 7):
        spark = extend_spark(spark, [(step, 1 / step) for step in range(start, start + 7)])
    steps = [step for step, _ in spark]
    assert SPARK_LENGTH / 3 <= len(spark) <= SPARK_LENGTH
    assert steps[0] == 1 and steps[-1] == 10_003 and steps == sorted(set(steps))
    gaps = {b - a for a, b in itertools.pairwise(steps[:-1])}
    assert max(gaps) <= 2 * min(gaps)


def test_it_draws_the_same_line_however_the_points_were_batched() -> None:
    pairs = [(step, float(step)) for step in range(1, 3000)]
    one_by_one: list = []
    for pair in pairs:
        one_by_one = extend_spark(one_by_one, [pair])
    assert one_by_one == extend_spark([], pairs)


def test_it_skips_points_that_come_again_and_keeps_a_nan() -> None:
    spark = extend_spark([], [(1, 1.0), (2, math.nan)])
    assert extend_spark(spark, [(1, 9.0), (2, 9.0)]) == [[1, 1.0], [2, "NaN"]]


def test_it_thins_evenly_with_both_ends() -> None:
    assert thin(list(range(5)), 40) == list(range(5))
    thinned = thin(list(range(81)), 40)
    assert len(thinned) == 40 and thinned[0] == 0 and thinned[-1] == 80
