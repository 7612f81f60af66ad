"""What the form does for people: it begins with what fits, offers what the data have, disables what could not be."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp.jobs import scene
from tests.webapp.library.scene import table, text
from webapp.configure import forms, page
from webapp.configure.fit import unfit
from webapp.jobs.models import Checkpoint
from webapp.library import offered
from webapp.library.models import Item
from webapp.teams.models import Team, User

pytestmark = pytest.mark.django_db
NEW = "/t/vision/jobs/new/"


@pytest.fixture
def member(client: Client, bob: User) -> Client:
    client.force_login(bob)
    return client


def check(member: Client, **changes: str) -> Any:
    typed = forms.blank() | {name.replace("__", "."): words for name, words in changes.items()}
    return member.post(f"{NEW}check", typed | {"view": "form"}).json()


def choice_of(item: Item) -> str:
    return next(each.value for each in offered.of_team(item.team) if each.title == item.name)


def problems(answer: Any) -> dict[str, str]:
    return {problem["field"]: problem["message"] for problem in answer["problems"]}


def test_a_regression_offers_no_accuracy_no_class_weights_and_no_smoothing() -> None:
    found = unfit(forms.blank() | {"dataset.name": "diabetes"})
    for field in ("checkpoint.best", "training.early_stopping.metric"):
        assert "val_accuracy" in found[field]
        assert not {"val_loss", "val_mean_absolute_error"} & set(found[field])
    assert found["training.class_weights"][""].startswith("weigh classes")
    assert found["training.label_smoothing"][""].startswith("spreads a class")
    digits = unfit(forms.blank())
    assert "val_mean_absolute_error" in digits["training.early_stopping.metric"]
    assert not {"training.class_weights", "training.label_smoothing"} & set(digits)


@pytest.mark.parametrize(
    ("strategy", "field", "value", "words"),
    [
        ("central_storage", "training.jit", "on", "cannot compile a step whose weights live on another device"),
        ("parameter_server", "training.aggregation.method", "local", "adds up micro-batches before replicas talk"),
        ("parameter_server", "training.mixed_precision", "float16", "needs a loss scale that all workers agree on"),
        ("parameter_server", "training.sharding", "off", "is for workers that step together"),
        ("model_parallel", "training.mixed_precision", "float16", "needs a loss scale that is decided within the step"),
    ],
)
def test_it_disables_settings_that_the_strategy_forbids(strategy: str, field: str, value: str, words: str) -> None:
    found = unfit(forms.blank() | {"strategy.name": strategy})
    assert found[field][value].startswith(words)
    assert value not in unfit(forms.blank()).get(field, {})


@pytest.mark.parametrize(
    ("typed", "strategies"),
    [
        ({"model.name": "mobilenet"}, {"model_parallel"}),
        ({"model.name": "gan"}, {"model_parallel", "parameter_server"}),
        ({"kind": "evaluate", "resume.job": "1", "resume.checkpoint": "step-1"}, set()),
        ({}, set()),
    ],
)
def test_a_strategy_that_no_option_would_mend_is_disabled(typed: dict[str, str], strategies: set[str]) -> None:
    assert set(unfit(forms.blank() | typed).get("strategy.name", {})) - {"tpu"} == strategies


def test_what_no_value_would_fit_is_disabled_unless_something_stands_there() -> None:
    typed = forms.blank() | {"dataset.name": "diabetes"}
    for weights, disabled in (("", True), ("balanced", False)):
        given = typed | {"training.class_weights": weights}
        drawn = page.build(given, (), unfit(typed))
        boxes = {box.field.name: box for _, boxes in drawn.advanced for box in boxes}
        assert bool(boxes["training.class_weights"].useless) == disabled


def test_a_fault_elsewhere_changes_nothing_of_what_fits_the_data() -> None:
    plain = unfit(forms.blank())
    faulty = unfit(forms.blank() | {"training.schedule.kind": "step", "training.seed": "many"})
    assert faulty["model.name"] == plain["model.name"]
    faulty = unfit(forms.blank() | {"training.seed": "many", "model.mlp.units": "0"})
    assert faulty["model.name"] == plain["model.name"]


def test_only_what_belongs_to_the_kind_of_schedule_counts() -> None:
    typed = {"training.schedule.every_steps": "5", "training.schedule.factor": "0.5", "training.schedule.final": "0.1"}
    for kind, keys in {"constant": set(), "step": {"every_steps", "factor"}, "cosine": {"final"}}.items():
        document = forms.spec_from_form(forms.blank() | typed | {"training.schedule.kind": kind})
        assert set(document["training"]["schedule"]) - {"kind"} == keys


def test_what_a_step_schedule_lacks_is_asked_for_at_its_own_field(member: Client) -> None:
    answer = check(member, training__schedule__kind="step", training__schedule__factor="0.5")
    assert problems(answer) == {"training.schedule.every_steps": "is required"}


def test_every_setting_is_drawn_once() -> None:
    drawn = page.build(forms.blank())
    boxes = [*drawn.lengths, *drawn.data, *drawn.rate, *(box for _, box in drawn.schedules)]
    boxes += [box for _, group in drawn.advanced for box in group]
    assert sorted(box.field.path for box in boxes) == sorted(one.path for one in forms.training_fields().values())
    assert "More" not in dict(drawn.advanced), "a setting without a heading"


def test_columns_may_have_spaces_and_commas_in_their_names() -> None:
    ignore = next(one for one in forms.option_fields("dataset", "csv") if one.path.endswith(".ignore"))
    assert ignore.widget == "text"
    assert ignore.read('sepal width, "a, b"') == ["sepal width", "a, b"]
    for names in (["sepal width", "a, b"], ['say "x"', "[y"], [], ["é"]):
        assert (ignore.read(ignore.write(names)) or []) == names


def test_an_uploaded_table_begins_with_what_fits_it(member: Client, team: Team, alice: User) -> None:
    value = choice_of(table(team, alice))
    shown = member.get(NEW, {"dataset": value}).content.decode()
    assert 'name="training.global_batch" value="32"' in shown
    assert 'value="mlp on leaves, mirrored x2"' in shown
    assert "CSV options" in shown
    answer = check(member, **{"dataset.name": value})
    assert answer["names_in_file"]["dataset.csv.target"] == ["width", "height", "kind"]
    assert answer["suggested_name"] == "mlp on leaves, mirrored x2"


def test_an_uploaded_text_begins_with_a_model_that_continues_it(member: Client, team: Team, alice: User) -> None:
    value = choice_of(text(team, alice))
    shown = member.get(NEW, {"dataset": value}).content.decode()
    assert 'name="model.name" value="transformer_lm" checked' in shown


def test_data_follow_a_model_that_was_chosen(member: Client) -> None:
    shown = member.get(NEW, {"model": "wide_and_deep"}).content.decode()
    assert 'name="dataset.name" value="synthetic_clicks" checked' in shown
    both = member.get(NEW, {"model": "wide_and_deep", "dataset": "digits"}).content.decode()
    assert 'name="dataset.name" value="digits" checked' in both


def test_it_shows_the_checkpoints_that_can_be_put_to_use(
    member: Client, team: Team, bob: User, seed_spec: dict[str, Any]
) -> None:
    assert "No job of this team has left a checkpoint yet" in member.get(NEW).content.decode()
    job = scene.queue(team, bob, seed_spec)
    attempt = scene.launch(job, "h")
    for step in (5, 10):
        name = f"step-{step}"
        Checkpoint.objects.create(job=job, attempt=attempt, name=name, step=step, stored=timezone.now())
    shown = member.get(NEW).content.decode()
    assert f"from={job.pk}&amp;checkpoint=step-10&amp;kind=evaluate" in shown
    assert "checkpoint=step-5&" not in shown
