"""Every plugin of the menu keeps its promises."""

from __future__ import annotations

import pytest

from workers.contract import catalog
from workers.contract.data import DatasetInfo
from workers.contract.layout import Layout
from workers.contract.problems import SpecInvalid

ENTRIES = [entry for kind in catalog.FOLDERS for entry in catalog.entries(kind).values()]


def label(entry: catalog.Entry) -> str:
    return f"{entry.kind}-{entry.name}"


@pytest.mark.parametrize("entry", ENTRIES, ids=label)
def test_it_describes_itself_and_each_of_its_options(entry: catalog.Entry) -> None:
    assert entry.title
    assert entry.summary
    assert entry.module.__doc__
    for name, field in entry.options.model_fields.items():
        assert field.title, f"{label(entry)}.{name} has no title"
        assert field.description, f"{label(entry)}.{name} has no description"


@pytest.mark.parametrize("entry", ENTRIES, ids=label)
def test_it_works_by_its_defaults_alone(entry: catalog.Entry) -> None:
    options = entry.parse({})
    if entry.kind == "dataset":
        assert isinstance(entry.module.describe(options), DatasetInfo)
    if entry.kind == "strategy":
        assert isinstance(entry.module.layout(options), Layout)
    if entry.kind == "model":
        assert entry.module.count_parameters((8, 8, 1), 10, options) > 0


@pytest.mark.parametrize("entry", ENTRIES, ids=label)
def test_it_refuses_unknown_options(entry: catalog.Entry) -> None:
    with pytest.raises(SpecInvalid, match="not a known field"):
        entry.parse({"no_such_option": 1})


def test_it_offers_what_the_first_issue_names() -> None:
    assert {"one_device", "mirrored", "multi_worker_mirrored"} <= set(catalog.entries("strategy"))
    assert {"linear", "mlp", "cnn"} <= set(catalog.entries("model"))
    assert {"digits", "mnist", "fashion_mnist", "synthetic_images"} <= set(catalog.entries("dataset"))
