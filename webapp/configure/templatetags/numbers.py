"""Numbers, durations and times as every page writes them; static/js/format.js writes the same in the browser."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone

register = template.Library()

NONE = "\u2013"
MINUS = "\u2212"
SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def parse(value: Any) -> float | None:
    """A value from the wire, where non-finite numbers are strings; None for nothing."""
    return None if value is None or value == "" else float(value)


def non_finite(value: float) -> str | None:
    """What stands for a number that is none; None for a finite one."""
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else ("∞" if value > 0 else MINUS + "∞")


@register.filter
def integer(given: Any) -> str:
    """12,400"""
    value = parse(given)
    if value is None:
        return NONE
    return non_finite(value) or f"{math.floor(value + 0.5):,}".replace("-", MINUS)


@register.filter
def number(given: Any, digits: int = 4) -> str:
    """Significant digits, all shown so that columns stand still: 0.04310, 1.204e-7."""
    value = parse(given)
    if value is None:
        return NONE
    odd = non_finite(value)
    if odd:
        return odd
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e7 or size < 1e-4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", MINUS)
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}".replace("-", MINUS)


@register.filter
def plain(given: float) -> str:
    """As a person would type it: 0.001"""
    return f"{given:.6g}"


@register.filter
def percent(given: Any, decimals: int = 2) -> str:
    """A share of one: 94.17 %"""
    value = parse(given)
    return NONE if value is None else non_finite(value) or f"{value * 100:.{decimals}f} %"


@register.filter
def compact(given: Any, unit: str = "") -> str:
    """Three digits and a prefix, then the unit: 12.4 k samples/s"""
    value = parse(given)
    if value is None:
        return NONE
    scale, prefix = next(((bound, name) for bound, name in SI if abs(value) >= bound * 0.9995), (1.0, ""))
    text = non_finite(value) or _three(value / scale) + (f" {prefix}" if prefix else "")
    return f"{text} {unit}" if unit else text


@register.filter
def size(given: Any) -> str:
    """Bytes in binary units: 1.50 GiB"""
    value = parse(given)
    if value is None:
        return NONE
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1023.5:
            return f"{_three(value)} {unit}" if unit != "B" else f"{value:.0f} B"
        value /= 1024
    return f"{_three(value)} TiB"


@register.filter
def duration(given: Any) -> str:
    """The two largest units: 1 h 20 m, 2 m 05 s, 12 s, 340 ms"""
    value = parse(given)
    if value is None or not math.isfinite(value):
        return NONE
    if 0 < value < 1:
        return f"{max(1, math.floor(value * 1000 + 0.5))} ms"
    whole = max(0, math.floor(value + 0.5))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} m"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


@register.filter
def ago(given: str | datetime | None) -> str:
    """How long ago, coarse enough to stand still: now, 12 s, 4 m, 3 h"""
    if not given:
        return NONE
    moment = datetime.fromisoformat(given) if isinstance(given, str) else given
    seconds = max(0.0, (timezone.now() - moment).total_seconds())
    if seconds < 5:
        return "now"
    steps = (
        (60, 1, "s"),
        (3600, 60, "m"),
        (86400, 3600, "h"),
        (86400 * 60, 86400, "d"),
        (86400 * 730, 86400 * 30, "mo"),
    )
    divisor, unit = next(((div, name) for bound, div, name in steps if seconds < bound), (86400 * 365, "y"))
    return f"{int(seconds // divisor)} {unit}"


@register.filter
def pace(row: Mapping[str, Any]) -> str:
    """What stands beside a row's progress: `3 m 10 s left`, or how long it took."""
    if row["eta_seconds"] is not None:
        return f"{duration(row['eta_seconds'])} left"
    if row["started"] and row["ended"]:
        seconds = datetime.fromisoformat(row["ended"]) - datetime.fromisoformat(row["started"])
        return f"in {duration(seconds.total_seconds())}"
    return ""


@register.filter
def spaced(name: str) -> str:
    """A plugin's name as words."""
    return name.replace("_", " ")


@register.filter
def as_json(value: Any) -> str:
    """For data attributes; empty for nothing."""
    return json.dumps(value) if value else ""


def _three(value: float) -> str:
    magnitude = abs(value)
    if magnitude == 0:
        return "0"
    return f"{value:.{0 if magnitude >= 100 else 1 if magnitude >= 10 else 2 if magnitude >= 1 else 3}f}"
