"""The figures' layouts, and which charts the pages hold."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from webapp.compare import panels
from webapp.metrics import figures
from workers.contract.metrics import METRICS


def test_it_names_colours_as_variables_so_that_themes_switch() -> None:
    shared = figures.layout()["template"]["layout"]
    assert shared["font"]["color"] == "var(--chart-text)"
    assert shared["yaxis"]["gridcolor"] == "var(--chart-grid)"


def test_it_keeps_a_hidden_axis_for_what_has_no_value() -> None:
    marks = figures.layout()["yaxis2"]
    assert marks["range"] == [0, 1] or tuple(marks["range"]) == (0, 1)
    assert marks["overlaying"] == "y" and marks["visible"] is False


def test_it_writes_si_letters_against_their_unit() -> None:
    assert figures.layout(unit="s", prefix="si")["yaxis"]["ticksuffix"] == "s"
    assert figures.layout(unit="samples/s", prefix="si")["yaxis"]["ticksuffix"] == ""


@pytest.mark.parametrize(("field", "value"), [("span", "wide"), ("prefix", "roman")])
def test_it_refuses_what_it_does_not_know_by_field_and_value(field: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{field}: '{value}'"):
        figures.layout(**{field: value})


def test_it_makes_charts_that_json_can_carry() -> None:
    text = json.dumps([panels.job_panels(), panels.extra_panel(), panels.compare_panel("throughput")])
    assert "NaN" not in text


def test_it_draws_every_metric_that_the_engine_reports_somewhere() -> None:
    drawn = {line.name for panel in panels.JOB_PANELS for line in panel.lines}
    drawn |= {panel.key for panel in panels.JOB_PANELS if panel.per_replica}
    assert set(METRICS) - drawn == set(panels.HELPERS)


def test_it_offers_only_metrics_of_whole_jobs_for_comparison() -> None:
    assert set(panels.COMPARED) <= set(panels.comparable())
    assert not {"utilization", "memory", "epoch"} & set(panels.comparable())


def test_it_imports_plotly_only_when_a_figure_is_built() -> None:
    code = "import sys; from webapp.metrics import figures; assert 'plotly' not in sys.modules; figures.layout()"
    subprocess.run([sys.executable, "-c", code], check=True)
