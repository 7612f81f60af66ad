"""What an address asks to compare: job numbers, axis, smoothing, metrics; what is wrong with it is said in words."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Final

AXES: Final = {"step": "Step", "epoch": "Epoch", "samples": "Samples seen", "time": "Relative time"}
MOST_JOBS = 300
MOST_SMOOTHING = 0.99


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Job numbers in the order of the address, each once; `notes` are sentences on what was left out."""

    ids: tuple[int, ...]
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Look:
    """How the charts of a comparison are drawn; `notes` are sentences on what was not understood."""

    axis: str
    smooth: float
    log: tuple[str, ...]
    metrics: tuple[str, ...]
    notes: tuple[str, ...]


def numbers(text: str) -> Numbers:
    """Read `1,2,3`. Nothing is raised: words stand for what is no number, comes twice, or is too much."""
    ids: dict[int, None] = {}
    strange: list[str] = []
    twice: list[int] = []
    for part in _parts(text):
        if not part.isascii() or not part.isdigit() or len(part) > 18:
            strange.append(part[:20])
        elif int(part) in ids:
            twice.append(int(part))
        else:
            ids[int(part)] = None
    notes = [f"“{part}” is not a job number and was left out." for part in strange[:5]]
    if twice:
        notes.append(f"{_jobs(twice)} was chosen more than once and is shown once.")
    if len(ids) > MOST_JOBS:
        notes.append(f"{len(ids)} jobs are chosen; the first {MOST_JOBS} are shown.")
    return Numbers(tuple(ids)[:MOST_JOBS], tuple(notes))


def windows(text: str) -> dict[int, tuple[int, int]]:
    """Read `12:100:200,13:50:80`, first and last step of jobs, both included; what is none is left out."""
    found = {}
    for part in _parts(text)[:MOST_JOBS]:
        figures = part.split(":")
        if len(figures) == 3 and all(one.isascii() and one.isdigit() and len(one) <= 18 for one in figures):
            job, first, last = map(int, figures)
            found[job] = (first, last)
    return found


def look(query: Mapping[str, str], known: Collection[str], default: Collection[str]) -> Look:
    """Read `x`, `smooth`, `log` and `metrics`; `known` are the metrics there are, `default` those shown unasked."""
    notes: list[str] = []
    axis = query.get("x", "step")
    if axis not in AXES:
        notes.append(f"x: “{axis[:20]}” is no axis, so steps are shown. Known: {', '.join(AXES)}.")
        axis = "step"
    asked = _parts(query.get("metrics", ""))
    unknown = [name for name in asked if name not in known]
    if unknown:
        notes.append(f"metrics: no chosen job reported {', '.join(name[:40] for name in unknown[:5])}.")
    chosen = [name for name in dict.fromkeys(asked) if name in known]
    smooth = _smoothing(query.get("smooth", "0"), notes)
    log = tuple(name for name in _parts(query.get("log", "")) if name in known)
    return Look(axis, smooth, log, tuple(chosen or default), tuple(notes))


def _smoothing(text: str, notes: list[str]) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if 0 <= weight <= MOST_SMOOTHING:
        return weight
    notes.append(f"smooth: “{text[:20]}” is not between 0 and {MOST_SMOOTHING}, so nothing is smoothed.")
    return 0.0


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _jobs(ids: Collection[int]) -> str:
    listed = ", ".join(str(one) for one in list(ids)[:5])
    return f"Job {listed}" if len(ids) == 1 else f"Each of jobs {listed}"
