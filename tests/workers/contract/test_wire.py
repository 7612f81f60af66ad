"""Messages and events survive their way as they are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import RedisServer
from workers.contract.events import Points, SeriesPoints, parse_event, to_line
from workers.contract.wire import EVENTS, Beat, Chunk, Hello, parse_message

MESSAGES = [
    Chunk(3, "logs/worker-0.stderr", 17, b"half a \xc3", 1.5),
    Beat(3, "gpu-1"),
    Hello('{"host": "gpu-1"}'),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_it_comes_back_from_redis_as_it_went(redis_server: RedisServer, message: Chunk | Beat | Hello) -> None:
    client = redis_server.client()
    client.xadd(EVENTS, message.fields())
    [(_, fields)] = client.xrange(EVENTS)
    assert parse_message(fields) == message


@pytest.mark.parametrize("fields", [{}, {b"kind": b"tea"}, {b"kind": b"chunk"}, {b"kind": b"beat", b"attempt": b"x"}])
def test_it_refuses_what_is_no_message(fields: dict[bytes, bytes]) -> None:
    with pytest.raises(ValueError):
        parse_message(fields)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20))
def test_it_keeps_every_value_of_a_point(values: list[float]) -> None:
    steps, times = list(range(len(values))), [0.5] * len(values)
    series = SeriesPoints(name="loss", steps=steps, times=times, values=values)
    line = to_line(Points(time=1.0, process="worker-0", step=1, epoch=1, series=[series]))
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    event = parse_event(line)
    assert isinstance(event, Points)
    pairs = zip(event.series[0].values, values, strict=True)
    assert all(got == sent or (math.isnan(got) and math.isnan(sent)) for got, sent in pairs)
