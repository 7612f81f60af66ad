"""How every chart looks, as Plotly layouts: axes, margins, type; colours are CSS variables for the page to resolve."""

from __future__ import annotations

import functools
from typing import Any, Literal

Range = Literal["normal", "tozero", "percent", "fraction"]
Prefix = Literal["plain", "si"]

MARGIN = {"l": 52, "r": 10, "t": 6, "b": 28}
MARKS_AXIS = "yaxis2"
"""0..1 from the bottom to the top of the plot: what has no value (a NaN) is marked on it."""


def layout(*, unit: str = "", span: Range = "normal", prefix: Prefix = "plain") -> dict[str, Any]:
    """A chart's layout as plain JSON types, checked by Plotly's own schema.

    `unit` follows every tick of the y axis; `span` is what the y axis always shows (`percent` 0..100 and more where the
    data go further, `fraction` at most 0..1); `prefix="si"` writes 12k and 3m. Raises ValueError for an unknown `span`
    or `prefix`.
    """
    if span not in ("normal", "tozero", "percent", "fraction"):
        raise ValueError(f"span: {span!r} is not a range. Known: normal, tozero, percent, fraction")
    if prefix not in ("plain", "si"):
        raise ValueError(f"prefix: {prefix!r} is not a number format. Known: plain, si")
    from plotly import graph_objects

    figure = graph_objects.Layout(
        template=template(),
        xaxis={},
        yaxis={**_format(unit, prefix), **_span(span)},
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    )
    answer: dict[str, Any] = figure.to_plotly_json()
    return answer


@functools.cache
def template() -> Any:
    """What all charts share, as a `plotly.graph_objects.layout.Template`."""
    from plotly import graph_objects

    axis = {
        "automargin": False,
        "gridcolor": "var(--chart-grid)",
        "linecolor": "var(--chart-axis)",
        "zeroline": False,
        "tickcolor": "var(--chart-axis)",
        "tickfont": {"color": "var(--chart-text)", "size": 11},
        "ticks": "",
        "nticks": 6,
    }
    return graph_objects.layout.Template(
        layout={
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": "var(--chart-text)", "family": "system-ui, sans-serif", "size": 11},
            "margin": MARGIN,
            "showlegend": False,
            "hovermode": False,
            "dragmode": "zoom",
            "xaxis": {**axis, "showgrid": False, "showline": True, "nticks": 7},
            "yaxis": {**axis, "fixedrange": True},
        }
    )


def _format(unit: str, prefix: Prefix) -> dict[str, Any]:
    # SI letters stand against their unit (12 ms, 3 kB), words apart from their number.
    if prefix == "si":
        return {"tickformat": "~s", "ticksuffix": unit if unit in {"s", "B"} else ""}
    return {"ticksuffix": unit if unit == "%" else "", "tickformat": "~g"}


def _span(span: Range) -> dict[str, Any]:
    if span == "percent":
        return {"autorangeoptions": {"include": [0, 100]}}
    if span == "fraction":
        return {"autorangeoptions": {"maxallowed": 1.02}}
    return {"rangemode": span}
