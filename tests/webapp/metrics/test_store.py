"""The store gives back what it was given, however it came."""

from __future__ import annotations

import math

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from webapp.metrics import store
from webapp.metrics.models import Block

INTS = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(0, 2**41).map(lambda ms: ms / 1000)
POINT = st.tuples(INTS, TIMES, st.floats(width=64) | st.floats(width=32))


def batch(points, *, owner=1, name="loss", replica=None, segment=1):
    steps, times, values = (list(column) for column in zip(*points, strict=True)) if points else ([], [], [])
    return store.batch(
        owner=owner, name=name, replica=replica, segment=segment, steps=steps, times=times, values=values
    )


def ramp(first, last, value=float):
    return [(step, 1.7e9 + step, value(step)) for step in range(first, last)]


def triples(curve):
    return list(zip(curve.steps.tolist(), curve.times.tolist(), curve.values.tolist(), strict=True))


def same(left, right):
    return repr(left) == repr(right)


class TestAnyPoints(TestCase):
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.lists(POINT, min_size=1, max_size=40), max_size=12), st.lists(st.integers(1, 900), max_size=6))
    def test_it_reads_what_was_appended_in_any_batching(self, parts, lengths):
        for number, length in enumerate(lengths):
            parts.append([(number, 1.0, math.sin(step)) for step in range(length)])
        expected = [point for part in parts for point in part]
        starts = [store.append([batch(part, replica=3)])[0] for part in parts]
        assert starts == [sum(len(part) for part in parts[:index]) for index in range(len(parts))]
        if not expected:
            assert store.counts(1) == {}
            return
        (curve,) = store.read(1, points=None)
        assert same(triples(curve), expected)
        assert store.counts(1) == {store.Key(1, "loss", 3): len(expected)}
        middle = len(expected) // 2
        (rest,) = store.read_since(1, {("loss", 3): middle})
        assert (rest.start, same(triples(rest), expected[middle:])) == (middle, True)
        summary = store.summaries([1])[store.Key(1, "loss", 3)]
        finite = [value for _, _, value in expected if math.isfinite(value)]
        assert (summary.min, summary.max) == (min(finite, default=None), max(finite, default=None))
        assert summary.last == expected[-1][2] or math.isnan(summary.last)


pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("size", "step"),
    [*((size, 1) for size in (1, 511, 513, 4097)), *((size, 600) for size in (512, 4095, 4096)), (8192, 100)]
    + [(20_001, step) for step in (1, 100, 600, 50_000)],
)
def test_it_keeps_blocks_full_and_few(size, step):
    points = ramp(0, size)
    width = step if size < 5000 else max(step, 500)
    # What goes before comes at once: the last 520 appends pack a tail and may fill a block.
    begun = max(0, size - 520 * width)
    store.append([batch(points[:begun])])
    for offset in range(begun, size, width):
        store.append([batch(points[offset : offset + width])])
    (curve,) = store.read(1, points=None)
    assert triples(curve) == points
    assert Block.objects.count() <= size // 4096 + 2


def test_it_appends_a_hundred_series_in_a_handful_of_queries():
    names = [f"metric_{number}" for number in range(40)]
    store.append([batch(ramp(0, 5), name=name) for name in names])
    with CaptureQueriesContext(
        connection,
    ) as few:
        store.append([batch(ramp(5, 6), name="metric_0")])
    with CaptureQueriesContext(connection) as many:
        store.append([batch(ramp(6, 600), name=name) for name in names])
    assert len(few) <= 6
    assert len(many) <= len(few) + 3


def test_it_shows_what_survived_a_restart():
    store.append([batch(ramp(0, 100, lambda step: 1.0), segment=1)])
    store.append([batch(ramp(60, 90, lambda step: 2.0), segment=2)])
    store.append([batch(ramp(100, 110, lambda step: 1.0), segment=1)])  # late, of the attempt that died
    (curve,) = store.read(1)
    assert curve.steps.tolist() == list(range(90))
    assert set(curve.values[:60].tolist()) == {1.0}
    assert set(curve.values[60:].tolist()) == {2.0}
    assert curve.count == 140
    (summary,) = store.summaries([1]).values()
    assert (summary.count, summary.last, summary.last_step) == (90, 2.0, 89)
    (everything,) = store.read_since(1, {("loss", None): 0})
    assert len(everything.steps) == 140


def test_a_takeover_cuts_what_the_new_segment_has_no_point_of_yet():
    for name, replica in (("loss", None), ("val_loss", None), ("utilization", 3)):
        store.append([batch(ramp(0, 100), name=name, replica=replica, segment=1)])
    store.append([batch(ramp(70, 80, lambda step: 2.0), segment=2)])
    store.take_over(1, segment=2, step=59)
    store.take_over(2, segment=2, step=0)
    curves = {curve.key.name: curve.steps.tolist() for curve in store.read(1)}
    assert curves["loss"] == [*range(60), *range(70, 80)]
    assert curves["val_loss"] == curves["utilization"] == list(range(60))
    figures = store.summaries([1])
    assert figures[store.Key(1, "val_loss")].last_step == 59
    assert store.counts(1)[store.Key(1, "val_loss")] == 100
    store.append([batch(ramp(50, 60, lambda step: 3.0), name="val_loss", segment=3)])
    store.take_over(1, segment=3, step=29)
    curves = {curve.key.name: curve.steps.tolist() for curve in store.read(1)}
    assert curves["val_loss"] == [*range(30), *range(50, 60)]
    assert curves["loss"] == list(range(30))
    store.forget([1])
    assert store.read(1) == []


def test_it_zooms_to_steps():
    store.append([batch(ramp(0, 10_000))])
    (curve,) = store.read(1, first=4090, last=4100)
    assert curve.steps.tolist() == list(range(4090, 4101))
    assert curve.count == 10_000
    assert not curve.thinned


def test_it_keeps_a_spike_of_one_step_and_everything_that_is_no_number():
    values = np.sin(np.arange(300_000) / 9000)
    values[123_457] = 40.0
    values[77_777] = -40.0
    values[200_000] = np.nan
    values[250_000] = np.inf
    values[250_001] = -np.inf
    store.append([batch([(step, 1.0, float(value)) for step, value in enumerate(values)])])
    (curve,) = store.read(1, points=500)
    kept = dict(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
    assert curve.thinned
    assert len(kept) <= 500
    assert kept[123_457] == 40.0
    assert kept[77_777] == -40.0
    assert math.isnan(kept[200_000])
    assert kept[250_000] == math.inf
    assert kept[250_001] == -math.inf
    assert {0, 299_999} <= kept.keys()


@pytest.mark.parametrize("limit", [1, 16, 17, 100, 1001])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_it_thins_curves_full_of_what_is_no_number(limit, bad):
    values = [bad if step % 2 else float(step) for step in range(5000)]
    store.append([batch([(step, 1.0, value) for step, value in enumerate(values)], name="flicker")])
    store.append([batch([(step, 1.0, bad) for step in range(5000)], name="gone")])
    for curve in store.read(1, points=limit):
        assert 2 <= len(curve.steps) <= max(limit, 16)
        assert not np.isfinite(curve.values).all()
        assert (np.diff(curve.steps) > 0).all()


def test_it_reads_many_owners_in_few_queries():
    store.append([batch(ramp(0, 30), owner=owner) for owner in range(50)])
    with CaptureQueriesContext(connection) as queries:
        curves = store.overview(range(50), names=["loss"], replica=None)
    assert [curve.key.owner for curve in curves] == list(range(50))
    assert len(queries) <= 4


def test_it_tells_replicas_apart_and_filters_by_them():
    store.append([batch(ramp(0, 3), replica=replica) for replica in (None, 0, 1)])
    assert [curve.key.replica for curve in store.read(1)] == [None, 0, 1]
    assert [curve.key.replica for curve in store.read(1, replica=1)] == [1]
    assert [curve.key.replica for curve in store.read(1, replica=None)] == [None]
    assert store.read(2) == []


def test_it_finds_the_best_value_with_its_step():
    store.append([batch(ramp(0, 5000, lambda step: abs(step - 4321.0)))])
    (summary,) = store.summaries([1]).values()
    assert summary.best("min") == (0.0, 4321)
    assert summary.best("max") == (4321.0, 0)
    assert summary.best(None) is None


def test_it_forgets_owners():
    store.append([batch(ramp(0, 600), owner=owner) for owner in (1, 2)])
    store.forget([1])
    assert store.read(1) == []
    assert Block.objects.count() == len(store.read(2)) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"values": [1.0]}, "2 steps, 2 times and 1 values"),
        ({"steps": [1, 2**63]}, "64 bits"),
        ({"times": [1.0, math.nan]}, "times"),
        ({"name": ""}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"replica": -1}, "replica"),
    ],
)
def test_it_refuses_what_it_cannot_hold(change, words):
    good = {"owner": 1, "name": "loss", "steps": [1, 2], "times": [1.0, 2.0], "values": [1.0, 2.0]}
    with pytest.raises(ValueError, match=words):
        store.batch(**(good | change))
