"""What the compare page's address means."""

from __future__ import annotations

import pytest

from webapp.compare.selection import MOST_JOBS, look, numbers

KNOWN = ["loss", "accuracy", "throughput"]


def test_it_keeps_the_order_of_the_address() -> None:
    assert numbers("3,1,2") == numbers(" 3 , 1,,2 ") and numbers("3,1,2").ids == (3, 1, 2)


def test_it_shows_a_job_once_and_says_so() -> None:
    found = numbers("3,3,1,3")
    assert found.ids == (3, 1)
    assert "more than once" in found.notes[0]


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "²", "٣", "9" * 40, "<script>"])
def test_it_leaves_out_what_is_no_number_in_words(text: str) -> None:
    found = numbers(f"7,{text}")
    assert found.ids == (7,)
    assert text[:20] in found.notes[0]


def test_it_shows_the_first_of_too_many() -> None:
    found = numbers(",".join(map(str, range(1, MOST_JOBS + 50))))
    assert len(found.ids) == MOST_JOBS
    assert str(MOST_JOBS) in found.notes[0]


def test_it_reads_the_whole_look() -> None:
    query = {"x": "samples", "smooth": "0.6", "log": "loss", "metrics": "accuracy,loss"}
    found = look(query, KNOWN, ["loss"])
    assert (found.axis, found.smooth, found.log, found.metrics) == ("samples", 0.6, ("loss",), ("accuracy", "loss"))
    assert not found.notes


def test_it_falls_back_to_the_usual_in_words() -> None:
    found = look({"x": "moon", "smooth": "nan", "metrics": "colour"}, KNOWN, ["loss"])
    assert (found.axis, found.smooth, found.metrics) == ("step", 0.0, ("loss",))
    assert [note.split(":")[0] for note in found.notes] == ["x", "metrics", "smooth"]


@pytest.mark.parametrize("text", ["1", "-0.1", "inf", "much"])
def test_it_smooths_only_within_bounds(text: str) -> None:
    assert look({"smooth": text}, KNOWN, ["loss"]).notes
