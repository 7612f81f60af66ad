"""The form and the spec, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.configure import beginnings, forms
from workers.contract import catalog
from workers.contract.optimizers import OPTIMIZERS
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import parse


def test_the_blank_form_is_a_valid_spec_with_every_default_written_out() -> None:
    spec = parse(forms.spec_from_form(forms.blank()))
    assert (spec.dataset.name, spec.model.name, spec.strategy.name) == ("digits", "mlp", "mirrored")
    assert spec.training.epochs == 10
    assert spec.model.options == {"units": [256, 128], "dropout": [0.4, 0.3], "activation": "relu"}


def test_a_form_made_of_a_spec_gives_the_same_spec_again(seed_spec: dict[str, Any]) -> None:
    spec = parse(seed_spec)
    typed = forms.form_from_spec(spec.to_dict())
    again = parse(forms.spec_from_form(typed))
    for kind in ("dataset", "model", "strategy"):
        assert again.options_of(kind) == spec.options_of(kind)
    assert again.training == spec.training
    assert forms.form_from_spec(again.to_dict()) == typed


@pytest.mark.parametrize("kind", list(catalog.FOLDERS))
def test_every_plugin_of_the_menu_survives_form_and_spec_with_its_defaults(kind: catalog.Kind) -> None:
    for name, entry in forms.offered(kind).items():
        typed = forms.blank() | {f"{kind}.name": name}
        options = forms.spec_from_form(typed)[kind]["options"]
        assert entry.parse(options) == entry.options()


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_every_optimizer_survives_form_and_spec_with_its_defaults(name: str) -> None:
    document = forms.spec_from_form(forms.blank() | {"training.optimizer.name": name})
    assert parse(document).training.optimizer == OPTIMIZERS[name]()


def test_steps_and_epochs_exclude_one_another() -> None:
    training = forms.spec_from_form(forms.blank() | {"training.length": "steps", "training.steps": "1e5"})["training"]
    assert training["steps"] == 100_000
    assert "epochs" not in training


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("[0, 2]", [0, 2]), ("0,2", [0, 2]), ("[1]", [1]), ("two", "two"), ("", None), ("1.5", 1.5)],
)
def test_a_number_or_a_list_of_devices_is_told_apart(text: str, value: Any) -> None:
    field = next(one for one in forms.option_fields("strategy", "mirrored") if one.path.endswith(".devices"))
    assert field.read(text) == value
    if value is not None:
        assert field.read(field.write(value)) == value


@settings(deadline=None)
@given(st.lists(st.floats(0, 0.999), min_size=0, max_size=6))
def test_a_list_of_floats_comes_back_exactly(values: list[float]) -> None:
    field = next(one for one in forms.option_fields("model", "mlp") if one.path.endswith(".dropout"))
    assert field.read(field.write(values)) == values


@settings(deadline=None)
@given(st.text(max_size=30))
def test_whatever_is_typed_into_any_field_never_breaks_the_form(text: str) -> None:
    typed = dict.fromkeys(forms.blank(), text)
    document = forms.spec_from_form(typed)
    assert set(document) >= {"version", "name", "dataset", "model", "strategy", "training"}


def test_what_is_no_number_stays_as_it_was_typed_and_is_refused_at_its_path() -> None:
    typed = forms.blank() | {"training.global_batch": "many"}
    document = forms.spec_from_form(typed)
    assert document["training"]["global_batch"] == "many"
    with pytest.raises(ValueError, match=r"training\.global_batch"):
        parse(document)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("training.global_batch", "training.global_batch"),
        ("model.options.units.1", "model.mlp.units"),
        ("strategy.options", "strategy.name"),
        ("strategy.options.devices.int", "strategy.mirrored.devices"),
        ("training.optimizer.rho", "optimizer.rmsprop.rho"),
        ("dataset.name", "dataset.name"),
        ("tags.0", "tags"),
        ("training.clip", "training.clip.value"),
        ("training.aggregation", "training.aggregation.method"),
        ("training.aggregation.micro_batches", "training.aggregation.micro_batches"),
        ("training.schedule", "training.schedule.kind"),
        ("training.early_stopping", "training.early_stopping.patience"),
        ("training.class_weights.0", "training.class_weights"),
        ("training", "training.epochs"),
        ("nothing.here", None),
        ("", None),
    ],
)
def test_a_problem_is_shown_beside_the_field_it_means(path: str, name: str | None) -> None:
    assert forms.field_at(path, forms.blank()) == name


def test_a_group_of_fields_comes_back_as_it_was(seed_spec: dict[str, Any]) -> None:
    training = seed_spec["training"] | {
        "aggregation": {"method": "local", "micro_batches": 4},
        "clip": {"global_norm": 0.5},
    }
    spec = parse(seed_spec | {"training": training})
    typed = forms.form_from_spec(spec.to_dict())
    assert typed["training.aggregation.micro_batches"] == "4"
    assert parse(forms.spec_from_form(typed)).training == spec.training


def test_a_group_that_nobody_filled_in_is_left_out() -> None:
    assert "clip" not in forms.spec_from_form(forms.blank())["training"]


def test_the_options_of_the_loss_come_back_as_they_were(seed_spec: dict[str, Any]) -> None:
    training = seed_spec["training"] | {
        "schedule": {"kind": "step", "every_steps": 100, "factor": 0.5},
        "label_smoothing": 0.1,
        "class_weights": {0: 1.0, 3: 2.5},
        "early_stopping": {"patience": 3, "metric": "val_accuracy"},
    }
    spec = parse(seed_spec | {"training": training})
    typed = forms.form_from_spec(spec.to_dict())
    assert typed["training.class_weights"] == "0: 1.0, 3: 2.5"
    assert parse(forms.spec_from_form(typed)).training == spec.training


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0: 1, 1: 2.5", {"0": 1, "1": 2.5}),
        ("{0: 1}", {"0": 1}),
        ("balanced", "balanced"),
        ("", None),
        ("0: 1, 0: 2", "0: 1, 0: 2"),
        ("0=1", "0=1"),
        ("0:", "0:"),
    ],
)
def test_class_weights_are_typed_as_pairs(text: str, value: Any) -> None:
    assert forms.training_fields()["class_weights"].read(text) == value


def test_nobody_stops_early_who_did_not_ask() -> None:
    training = forms.spec_from_form(forms.blank())["training"]
    assert "early_stopping" not in training
    assert "class_weights" not in training


def test_an_unknown_key_has_no_field_to_be_shown_at() -> None:
    assert not forms.has_field(Problem("training.speed", "is not a known field", 3), forms.blank())


@pytest.mark.parametrize(
    ("strategy", "options", "name"),
    [
        ("mirrored", {"devices": 2}, "mlp on digits, mirrored x2"),
        ("one_device", {}, "mlp on digits, one device"),
        ("multi_worker_mirrored", {"workers": 4}, "mlp on digits, multi worker mirrored x4"),
        ("mirrored", {"devices": "x"}, "mlp on digits, mirrored"),
        ("gone", {}, "mlp on digits, gone"),
    ],
)
def test_the_name_says_what_was_chosen(strategy: str, options: dict[str, Any], name: str) -> None:
    spec = {
        "dataset": {"name": "digits"},
        "model": {"name": "mlp"},
        "strategy": {"name": strategy, "options": options},
    }
    assert forms.suggest_name(spec) == name


def test_a_spec_of_a_plugin_that_is_gone_keeps_its_name_in_the_form() -> None:
    typed = forms.form_from_spec({"dataset": {"name": "gone", "options": {"a": 1}}})
    assert typed["dataset.name"] == "gone"
    assert forms.spec_from_form(typed)["dataset"]["name"] == "gone"


KEPT: list[dict[str, Any]] = [
    {},
    {"checkpoint": {"every_steps": 50, "keep": 2}},
    {"checkpoint": {"every_minutes": 2.5, "keep": 5, "best": "val_loss"}},
    {"resume": {"job": 12, "checkpoint": "step-50"}},
    {"export": ["saved_model"]},
    {"export": ["keras", "saved_model"], "checkpoint": {"every_steps": 1, "keep": 1}},
]


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_kept_survives_form_and_spec(seed_spec: dict[str, Any], kept: dict[str, Any]) -> None:
    spec = parse({**seed_spec, **kept})
    typed = forms.form_from_spec(spec.to_dict())
    again = parse(forms.spec_from_form(forms.typed_from_post(typed)))
    assert (again.checkpoint, again.resume, again.export) == (spec.checkpoint, spec.resume, spec.export)


@pytest.mark.parametrize("kind", forms.USES)
def test_a_job_that_takes_no_steps_survives_form_and_spec(seed_spec: dict[str, Any], kind: str) -> None:
    typed = forms.form_from_spec(seed_spec) | beginnings.going_on(7, "step-20")
    typed |= beginnings.put_to_use(typed, kind) | {"predict.split": "validation"}
    document = forms.spec_from_form(forms.typed_from_post(typed))
    assert document["training"] == {
        "global_batch": 128, "validation_split": 0.2, "seed": 1, "mixed_precision": "none",
    }  # fmt: skip
    assert ("export" in document, "predict" in document) == (kind == "export", kind == "predict")
    spec = parse(document)
    assert (spec.kind, spec.name, spec.total_steps) == (kind, f"{kind} {seed_spec['name']}", 0)
    assert parse(forms.spec_from_form(forms.form_from_spec(spec.to_dict()))) == spec


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ({"kind": "fly"}, "kind"),
        ({"kind": "predict", "predict.split": "test"}, "predict.split"),
        ({"checkpoint.keep": "5"}, "checkpoint"),
        ({"checkpoint.every_steps": "0"}, "checkpoint.every_steps"),
        ({"resume.job": "12"}, "resume.checkpoint"),
        ({"export.keras": "off"}, "export"),
    ],
)
def test_what_is_kept_wrongly_is_shown_beside_its_field(typed: dict[str, str], path: str) -> None:
    given = forms.blank() | typed
    with pytest.raises(SpecInvalid) as error:
        parse(forms.spec_from_form(given))
    [problem] = error.value.problems
    assert problem.path == path
    assert forms.has_field(problem, given)
