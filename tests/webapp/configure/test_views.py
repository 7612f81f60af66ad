"""The new-job page over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.test import Client
from django.urls import reverse

from tests.webapp.configure.conftest import NEW, hear, typed
from webapp.jobs.models import Job
from webapp.jobs.services import create
from webapp.teams.models import Team, User
from workers.contract.inventory import SelfTest
from workers.contract.spec import parse

pytestmark = pytest.mark.django_db
TABLE = {
    "kind": "csv",
    "samples": 200,
    "bytes": 1000,
    "sha256": "0" * 64,
    "parts": [{"name": "passwd", "samples": 200, "complete": 200, "bytes": 1000}],
    "columns": [{"name": "x", "type": "number"}, {"name": "y", "type": "boolean", "values": ["false", "true"]}],
}
"""Facts that somebody made up."""


def test_it_shows_three_choices_and_what_would_start(member: Client) -> None:
    hear()
    page = member.get(NEW).content.decode()
    for words in ("Dataset", "Model", "Strategy", "Fashion-MNIST", "Multi-worker mirrored", "Can start now", "50,826"):
        assert words in page
    assert 'value="mlp on digits, mirrored x2"' in page


def test_it_asks_few_questions_of_the_database(member: Client, django_assert_max_num_queries: Any) -> None:
    hear()
    with django_assert_max_num_queries(60):
        member.get(NEW)


def test_a_submitted_form_becomes_a_queued_job_and_leads_to_it(member: Client, bob: User) -> None:
    answer = member.post(NEW, typed(name="first", training__global_batch="64", tags="a, b"))
    job = Job.objects.get()
    assert answer.status_code == 303
    assert answer["Location"] == reverse("job", args=[job.pk])
    assert (job.name, job.owner, job.state) == ("first", bob, "queued")
    assert job.spec.training.global_batch == 64
    assert job.spec.tags == ("a", "b")


def test_a_form_without_a_name_gets_the_suggested_one(member: Client) -> None:
    member.post(NEW, typed(name="  "))
    assert Job.objects.get().name == "mlp on digits, mirrored x2"


def test_an_unticked_box_is_not_ticked_again(member: Client) -> None:
    data = {name: text for name, text in typed().items() if name != "training.shuffle"}
    member.post(NEW, data)
    assert Job.objects.get().spec.training.shuffle is False


def test_a_refused_form_says_why_beside_the_field_and_keeps_what_was_typed(member: Client) -> None:
    answer = member.post(NEW, typed(training__global_batch="127", model__mlp__units="256, none", name="mine"))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert not Job.objects.exists()
    assert 'value="256, none"' in page
    assert 'value="127"' in page
    assert 'href="#field-model-mlp-units"' in page
    assert 'aria-invalid="true"' in page


def test_a_batch_that_replicas_cannot_share_is_refused_with_the_nearest_that_can(member: Client) -> None:
    page = member.post(NEW, typed(training__global_batch="127")).content.decode()
    assert "Cannot be shared evenly by 2 replicas" in page
    assert "126 or 128" in page


def test_more_devices_than_there_are_is_refused_at_submit(member: Client) -> None:
    hear()
    answer = member.post(NEW, typed(strategy__mirrored__devices="8"))
    assert answer.status_code == 422
    assert "h has 2 cpu" in answer.content.decode()


def test_a_tpu_is_refused_where_no_host_has_one(member: Client) -> None:
    hear()
    answer = member.post(NEW, typed(strategy__name="tpu"))
    assert answer.status_code == 422
    assert "needs 8 TPU cores, the hosts have 0" in answer.content.decode()


def test_an_empty_length_is_asked_for_by_its_own_name(member: Client) -> None:
    page = member.post(NEW, typed(training__epochs="")).content.decode()
    assert "Say how many epochs to train" in page
    assert 'href="#field-training-epochs"' in page


def test_a_dataset_that_no_host_can_load_is_disabled_and_says_why(member: Client) -> None:
    hear(unavailable={"mnist": "MNIST is not here. Put it there."})
    page = member.get(NEW).content.decode()
    assert 'value="mnist" disabled' in page
    assert "MNIST is not here. Put it there." in page


def test_yaml_is_submitted_as_well(member: Client, seed_spec: dict[str, Any]) -> None:
    answer = member.post(NEW, {"view": "yaml", "yaml": parse(seed_spec).to_yaml()})
    assert answer.status_code == 303
    assert Job.objects.get().spec == parse(seed_spec)


def test_broken_yaml_is_kept_and_its_line_is_named(member: Client) -> None:
    text = "version: lockstep/v1\nname: [half"
    answer = member.post(NEW, {"view": "yaml", "yaml": text})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "line 2" in page
    assert "name: [half" in page


@pytest.mark.parametrize("text", ["", "- a\n- b", "a: &a [*a]", "x: !!python/object:os.system {}", "\x00", "{" * 5000])
def test_whatever_stands_in_the_yaml_gets_an_answer(member: Client, text: str) -> None:
    for address in ("", "check", "fields"):
        answer = member.post(f"{NEW}{address}", {"view": "yaml", "yaml": text})
        assert answer.status_code in (200, 422)


def test_clone_starts_from_the_spec_of_a_visible_job(
    member: Client, team: Team, bob: User, seed_spec: dict[str, Any]
) -> None:
    job = create(team=team, owner=bob, spec=parse(seed_spec))
    page = member.get(f"{NEW}?from={job.pk}").content.decode()
    assert 'value="digits on two workers"' in page
    assert 'value="multi_worker_mirrored" checked' in page


@pytest.mark.parametrize("given", ["999", "x", "-1", "9" * 40])
def test_clone_of_a_job_that_is_not_there_is_not_found(member: Client, given: str) -> None:
    assert member.get(f"{NEW}?from={given}").status_code == 404


def test_clone_of_a_job_of_another_team_is_not_found(member: Client, charlie: User, seed_spec: dict[str, Any]) -> None:
    other = charlie.teams.get()
    job = create(team=other, owner=charlie, spec=parse(seed_spec))
    assert member.get(f"{NEW}?from={job.pk}").status_code == 404


def test_check_answers_with_figures_yaml_and_a_name(member: Client) -> None:
    hear()
    answer = member.post(f"{NEW}check", typed(strategy__name="one_device", name="x")).json()
    assert answer["ok"] is True
    assert "Can start now" in answer["summary"]
    assert answer["suggested_name"] == "mlp on digits, one device"
    assert parse(answer["yaml"]).strategy.name == "one_device"


def test_check_names_the_field_of_each_problem(member: Client) -> None:
    answer = member.post(f"{NEW}check", typed(training__global_batch="127")).json()
    assert [problem["field"] for problem in answer["problems"]] == ["training.global_batch"]
    assert "126 or 128" in answer["problems"][0]["remedy"]


def test_check_says_which_values_do_not_fit(member: Client) -> None:
    hear()
    answer = member.post(f"{NEW}check", typed(strategy__mirrored__device_type="cpu")).json()
    assert "nccl" in answer["unfit"]["strategy.mirrored.cross_device_ops"]
    assert "TPU" in answer["unfit"]["strategy.name"]["tpu"]
    assert set(answer["unfit"]["strategy.name"]) == {"tpu"}


def test_the_form_disables_what_failed_in_the_self_test_of_every_host(member: Client) -> None:
    failed = {"mirrored/mean/none/xla": "XLA said no.", "mirrored/mean/float16/plain": "Half is not enough."}
    failed |= {"mirrored/sum/none/plain": "It does not add up.", "central_storage/mean/none/plain": "Nobody home."}
    hear(selftest=SelfTest(key="k", passed=("mirrored/mean/none/plain",), failures=failed))
    unfit = member.post(f"{NEW}check", typed(strategy__name="mirrored")).json()["unfit"]
    assert unfit["training.jit"] == {"on": "failed in the self-test of h: XLA said no"}
    assert unfit["training.mixed_precision"] == {"float16": "failed in the self-test of h: Half is not enough"}
    assert unfit["training.aggregation.method"] == {"sum": "failed in the self-test of h: It does not add up"}
    assert unfit["strategy.name"]["central_storage"] == "failed in the self-test of h: Nobody home"
    page = member.get(NEW).content.decode()
    assert 'name="training.jit" disabled' in page
    assert "Failed in the self-test of h: XLA said no" in page
    [refused] = member.post(f"{NEW}check", typed(training__jit="on")).json()["problems"]
    assert (refused["field"], refused["remedy"]) == ("training.jit", "Switch it off")


def test_check_shows_the_effective_learning_rate_of_a_sum(member: Client) -> None:
    hear()
    answer = member.post(f"{NEW}check", typed(training__aggregation__method="sum")).json()
    assert "Effective learning rate" in answer["summary"]
    assert "0.128" in answer["summary"]
    answer = member.post(f"{NEW}check", typed()).json()
    assert "Effective learning rate" not in answer["summary"]


def test_check_refuses_micro_batches_beside_another_method(member: Client) -> None:
    answer = member.post(f"{NEW}check", typed(training__aggregation__micro_batches="4")).json()
    assert [problem["field"] for problem in answer["problems"]] == ["training.aggregation.method"]
    assert "use method local" in answer["problems"][0]["message"]


def test_a_file_of_one_host_is_refused_and_stays_yaml(member: Client, seed_spec: dict[str, Any]) -> None:
    seed_spec["training"]["initial_model"] = "/models/first.keras"
    text = parse(seed_spec).to_yaml()
    for address in ("fields", "check"):
        answer = member.post(f"{NEW}{address}", {"yaml": text, "view": "yaml"})
        [problem] = answer.json()["problems"]
        assert problem["path"] == "training.initial_model"
        assert "python -m workers.training" in problem["remedy"]


@pytest.mark.parametrize("facts", [{}, {"facts": TABLE}])
def test_data_in_a_file_of_one_host_is_refused_and_stays_yaml(
    facts: dict[str, Any], member: Client, seed_spec: dict[str, Any]
) -> None:
    seed_spec["dataset"] = {"name": "csv", "options": {"file": "/etc/passwd", "target": "y", **facts}}
    text = yaml.safe_dump(seed_spec)
    for address in ("fields", "check"):
        answer = member.post(f"{NEW}{address}", {"yaml": text, "view": "yaml"})
        [problem] = answer.json()["problems"]
        assert problem["path"] == "dataset.options.file"
        assert "python -m workers.training" in problem["remedy"]


def test_the_form_offers_no_data_that_only_a_host_can_open(member: Client) -> None:
    assert 'value="csv"' not in member.get(NEW).content.decode()


def test_yaml_becomes_the_form_that_says_the_same(member: Client, seed_spec: dict[str, Any]) -> None:
    answer = member.post(f"{NEW}fields", {"yaml": parse(seed_spec).to_yaml()})
    assert answer.status_code == 200
    assert 'value="digits on two workers"' in answer.content.decode()


def test_yaml_with_a_field_that_the_form_has_not_stays_yaml(member: Client, seed_spec: dict[str, Any]) -> None:
    text = parse(seed_spec).to_yaml() + "speed: 3\n"
    answer = member.post(f"{NEW}fields", {"yaml": text})
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["path"] == "speed"


@pytest.mark.parametrize("address", ["", "fields", "check"])
class TestAccess:
    def test_a_reader_is_told_that_readers_may_not(self, client: Client, rita: User, address: str) -> None:
        client.force_login(rita)
        answer = client.post(f"{NEW}{address}", typed())
        assert answer.status_code == 403
        assert not Job.objects.exists()

    def test_a_stranger_finds_nothing(self, client: Client, charlie: User, address: str) -> None:
        client.force_login(charlie)
        assert client.post(f"{NEW}{address}", typed()).status_code == 404

    def test_an_anonymous_visitor_is_sent_to_the_login(self, client: Client, team: Team, address: str) -> None:
        assert client.post(f"{NEW}{address}", typed())["Location"].startswith("/login/")


def test_a_reader_sees_no_button_for_a_new_job(client: Client, rita: User) -> None:
    client.force_login(rita)
    assert NEW not in client.get("/t/vision/jobs/").content.decode()


def test_no_page_carries_an_inline_style_or_an_unnamed_script(member: Client) -> None:
    for address in (NEW, "/t/vision/jobs/", "/login/"):
        page = member.get(address, follow=True).content.decode()
        assert " style=" not in page
        assert " onclick=" not in page
        assert "<script>" not in page


def test_every_fault_of_a_form_is_told_at_once(member: Client) -> None:
    hear()
    changes = {"training__global_batch": "127", "model__mlp__units": "256, none", "strategy__mirrored__devices": "9"}
    answer = member.post(f"{NEW}check", typed(**changes)).json()
    fields = {problem["field"] for problem in answer["problems"]}
    assert fields == {"training.global_batch", "model.mlp.units", "strategy.name"}


def test_a_yaml_that_would_multiply_itself_is_refused_unread(member: Client) -> None:
    bomb = "a: &a [1,1]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    answer = member.post(f"{NEW}check", {"view": "yaml", "yaml": bomb}).json()
    assert "has an alias at line 2" in answer["problems"][0]["message"]
