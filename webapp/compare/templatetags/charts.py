"""What templates need to hold charts: the figures as data, numbers as their metric is read, a job's colour."""

from __future__ import annotations

import math
from typing import Any

from django import template

from webapp.compare import panels, selection
from webapp.jobs.models import State

register = template.Library()
PALETTE = 10


@register.simple_tag
def job_figures() -> dict[str, Any]:
    """The job page's charts with their layouts, for `json_script`."""
    return {"panels": panels.job_panels(), "extra": panels.extra_panel()}


@register.simple_tag
def job_panels() -> tuple[panels.Panel, ...]:
    """The job page's charts, in their order."""
    return panels.JOB_PANELS


@register.simple_tag
def series_names() -> list[str]:
    """Every series of a whole job that the engine may report, for `json_script`."""
    return [*panels.comparable(), *sorted(panels.HELPERS)]


@register.simple_tag
def axis_choices() -> list[tuple[str, str]]:
    """The x axes of charts: value and label."""
    return list(selection.AXES.items())


@register.simple_tag
def job_states() -> list[tuple[str, str]]:
    """Every state a job can be in: value and label."""
    return [(str(value), str(label)) for value, label in State.choices]


@register.filter
def figure(value: float | None, unit: str = "") -> str:
    """A number as its metric's unit is read: `0.04310`, `12.4 k`, `8.31 ms`; a dash for None."""
    if value is None:
        return "–"  # noqa: RUF001
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"  # noqa: RUF001
    if unit in {"s", "s per step"}:
        return _seconds(value)
    if unit:
        return _compact(value)
    return _plain(value)


@register.filter
def sortable(value: float | None) -> str:
    """A number in full for scripts; empty for None."""
    return "" if value is None else repr(value)


@register.filter
def seconds(value: float | None) -> str:
    """A duration in its two largest units."""
    if value is None:
        return "–"  # noqa: RUF001
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


@register.filter
def series_slot(job_id: int) -> int:
    """The number of a job's colour in the palette, 1 to 10: the same on every page."""
    return (job_id - 1) % PALETTE + 1


def _plain(value: float) -> str:
    size = abs(value)
    if value == 0:
        return "0"
    if size >= 1e7 or size < 1e-4:
        return f"{value:.3e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    return f"{value:,.{max(0, 3 - math.floor(math.log10(size)))}f}"


def _compact(value: float) -> str:
    for bound, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= bound * 0.9995:
            return f"{_digits(value / bound)}{letter}"
    return _digits(value)


def _seconds(value: float) -> str:
    if value and abs(value) < 0.0009995:
        return f"{_digits(value * 1e6)} µs"
    if value and abs(value) < 0.9995:
        return f"{_digits(value * 1e3)} ms"
    return f"{_digits(value)} s"


def _digits(value: float) -> str:
    size = abs(value)
    if not size:
        return "0"
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2}f}"
