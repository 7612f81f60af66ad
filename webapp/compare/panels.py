"""Which charts the job page and the compare page hold, and what each of them draws."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from webapp.metrics import figures
from workers.contract.metrics import METRICS, metric


class Line(NamedTuple):
    """One series of a chart; `colour` is a number of the palette and `dash` one of Plotly's."""

    name: str
    label: str
    colour: int = 1
    dash: str = "solid"


class Panel(NamedTuple):
    """One chart; `span` counts sixths of the page's width, `optional` ones wait for their first point."""

    key: str
    title: str
    unit: str
    lines: tuple[Line, ...]
    span: int = 2
    prefix: figures.Prefix = "plain"
    range: figures.Range = "normal"
    per_replica: bool = False
    optional: bool = False
    smooths: bool = True

    def as_dict(self) -> dict[str, Any]:
        """For the page's JSON."""
        return {
            "key": self.key,
            "title": self.title,
            "unit": self.unit,
            "lines": [line._asdict() for line in self.lines],
            "perReplica": self.per_replica,
            "optional": self.optional,
            "smooths": self.smooths,
            "layout": figures.layout(unit=_symbol(self.unit), span=self.range, prefix=self.prefix),
        }


def _learning(key: str, name: str, **more: Any) -> Panel:
    lines = (
        Line(name, "train", 1),
        Line(f"val_{name}", "validation", 2),
        Line(f"test_{name}", "test", 3),
    )
    return Panel(key, metric(name).title, metric(name).unit, lines, span=3, **more)


OTHERS = ("mean_absolute_error", "perplexity", "reconstruction_error", "generator_loss")
"""What other tasks than classification report beside the loss."""

JOB_PANELS: tuple[Panel, ...] = (
    _learning("loss", "loss"),
    _learning("accuracy", "accuracy", range="fraction"),
    *(_learning(name, name, optional=True) for name in OTHERS),
    Panel("throughput", "Throughput", "samples/s", (Line("throughput", "job", 1),), prefix="si", range="tozero"),
    Panel(
        "step_time",
        "Step time",
        "s",
        (Line("step_time", "step", 1), Line("input_wait", "input", 2)),
        prefix="si",
        range="tozero",
    ),
    Panel("learning_rate", "Learning rate", "", (Line("learning_rate", "rate", 1),), range="tozero", smooths=False),
    Panel("utilization", "Utilization by replica", "%", (), span=3, range="percent", per_replica=True),
    Panel("memory", "Memory by replica", "bytes", (), span=3, prefix="si", range="tozero", per_replica=True),
    Panel("worker_steps", "Steps by worker", "steps", (), span=3, range="tozero", per_replica=True, optional=True),
)
COMPARED = ("loss", "val_loss", "accuracy", "val_accuracy", "throughput", "step_time")
"""The metrics that a comparison shows unless the address says otherwise."""

INSTEAD = tuple(f"{part}{name}" for name in OTHERS for part in ("", "val_"))
"""What other tasks report where classification has an accuracy: shown unasked as soon as there is any."""

HELPERS = frozenset({"epoch", "samples_seen"})
"""Series that are an axis, not a result."""


@functools.cache
def job_panels() -> list[dict[str, Any]]:
    """The job page's charts in their order; the layouts were checked by Plotly."""
    return [panel.as_dict() for panel in JOB_PANELS]


@functools.cache
def extra_panel() -> dict[str, Any]:
    """The chart of a series that only a plugin knows; the page fills in key, title and line."""
    return Panel("", "", "", (), optional=True).as_dict()


@functools.cache
def compare_panel(name: str) -> dict[str, Any]:
    """The chart of one metric over many jobs."""
    found = metric(name)
    prefix: figures.Prefix = "si" if found.unit else "plain"
    span: figures.Range = (
        "fraction" if name.endswith("accuracy") else "tozero" if found.unit or name == "learning_rate" else "normal"
    )
    return Panel(name, found.title, found.unit, (), prefix=prefix, range=span).as_dict()


def comparable() -> list[str]:
    """Names of the metrics of whole jobs that charts and tables of a comparison may show."""
    return [name for name, one in METRICS.items() if not one.per_replica and name not in HELPERS]


def _symbol(unit: str) -> str:
    return {"bytes": "B", "s per step": "s"}.get(unit, unit)
