"""Every plugin of the menu keeps its promises."""

from __future__ import annotations

from typing import Any

import pytest

from workers.contract import catalog
from workers.contract.data import DatasetInfo
from workers.contract.layout import Layout
from workers.contract.library import FILE
from workers.contract.problems import SpecInvalid

ENTRIES = [entry for kind in catalog.FOLDERS for entry in catalog.entries(kind).values()]


def described(dataset: str) -> DatasetInfo:
    entry = catalog.find("dataset", dataset)
    info: DatasetInfo = entry.module.describe(entry.options())
    return info


BUILT_IN = [name for name, entry in catalog.entries("dataset").items() if FILE not in entry.options.model_fields]
DATA = [described(name) for name in BUILT_IN]


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
    if FILE in entry.options.model_fields:
        pytest.skip("opens a file of the user's")
    options = entry.parse({})
    if entry.kind == "dataset":
        assert isinstance(entry.module.describe(options), DatasetInfo)
    if entry.kind == "strategy":
        assert isinstance(entry.module.layout(options), Layout)
    if entry.kind == "model":
        fitting = [info for info in DATA if not hasattr(entry.module, "check") or not entry.module.check(options, info)]
        assert fitting
        assert all(entry.module.count_parameters(info, options) > 0 for info in fitting)


@pytest.mark.parametrize(
    ("dataset", "models"),
    [
        ("digits", {"linear", "mlp", "cnn", "autoencoder", "gan", "resnet", "efficientnet", "mobilenet"}),
        ("diabetes", {"linear", "mlp", "autoencoder", "gan"}),
        ("imdb", {"text_classifier"}),
        ("tiny_text", {"transformer_lm"}),
        ("synthetic_clicks", {"wide_and_deep"}),
    ],
)
def test_it_offers_the_models_that_fit_the_data(dataset: str, models: set[str]) -> None:
    info = described(dataset)
    built_in = (entry for entry in catalog.entries("model").values() if FILE not in entry.options.model_fields)
    offered = {entry.name: entry.module.check(entry.options(), info) for entry in built_in}
    assert {name for name, problems in offered.items() if not problems} == models
    refusals = [problem for problems in offered.values() for problem in problems]
    assert all(problem.path == "name" and problem.remedy for problem in refusals)


@pytest.mark.parametrize("name", ["keras_file", "python_module"])
def test_a_model_in_a_file_says_that_it_needs_one(name: str) -> None:
    entry = catalog.find("model", name)
    (problem,) = entry.module.check(entry.options(), catalog.find("dataset", "digits").module.describe(None))
    assert (problem.path, problem.message) == ("options.file", "is required")


@pytest.mark.parametrize("entry", ENTRIES, ids=label)
def test_it_refuses_unknown_options(entry: catalog.Entry) -> None:
    with pytest.raises(SpecInvalid, match="not a known field"):
        entry.parse({"no_such_option": 1})


def test_it_offers_what_the_issues_name() -> None:
    assert {"one_device", "mirrored", "multi_worker_mirrored"} <= set(catalog.entries("strategy"))
    text, pictures = {"text_classifier", "transformer_lm"}, {"cnn", "efficientnet", "mobilenet"}
    assert {"linear", "mlp", "wide_and_deep", "autoencoder", "gan"} | text | pictures <= set(catalog.entries("model"))
    downloaded = {"mnist", "fashion_mnist", "cifar10", "cifar100", "imdb"}
    bundled = {"digits", "breast_cancer", "wine", "diabetes", "tiny_text"}
    synthetic = {"synthetic_images", "synthetic_tokens", "synthetic_clicks"}
    assert downloaded | bundled | synthetic <= set(catalog.entries("dataset"))


@pytest.mark.parametrize(
    ("given", "dropout"),
    [
        ({"units": [8]}, (0.4,)),
        ({"units": [8, 8, 8]}, (0.4, 0.3, 0.3)),
        ({"units": [8, 8], "dropout": [0.1]}, (0.1, 0.1)),
        ({"units": [8, 8], "dropout": []}, (0.0, 0.0)),
    ],
)
def test_a_perceptron_asks_for_no_more_dropout_than_was_meant(
    given: dict[str, Any], dropout: tuple[float, ...]
) -> None:
    assert catalog.find("model", "mlp").parse(given).model_dump()["dropout"] == dropout
