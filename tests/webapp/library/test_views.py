"""The library over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.webapp.library import scene
from webapp.configure import forms
from webapp.jobs.models import Job
from webapp.library.models import Item, Upload, Use
from webapp.teams.models import Membership, Team, User
from workers.contract.library import FORMATS, references
from workers.contract.obstacles import Obstacle
from workers.contract.spec import parse

pytestmark = pytest.mark.django_db
LIBRARY = "/t/vision/library/"


@pytest.fixture
def member(client: Client, bob: User) -> Client:
    client.force_login(bob)
    return client


@pytest.fixture
def item(team: Team, bob: User) -> Item:
    return scene.item(team, bob)


def choice(item: Item) -> str:
    return f"{item.latest.format}={item.latest.reference}"


def typed(**changes: str) -> dict[str, str]:
    return forms.blank() | {name.replace("__", "."): text for name, text in changes.items()} | {"view": "form"}


def test_it_lists_uploaded_and_built_in(member: Client, item: Item) -> None:
    page = member.get(LIBRARY).content.decode()
    for words in (
        "digits net",
        "Keras file, v1",
        "8 \u00d7 8 \u00d7 1",
        "650",
        "Digits",
        "Multilayer perceptron",
    ):
        assert words in page


def test_it_tells_what_built_in_models_weigh_and_for_which_data(member: Client) -> None:
    page = member.get(LIBRARY).content.decode()
    row = page[page.index("Convolutional network") :].partition("</tr>")[0]
    assert [words for words in ("as Digits", "53,002", "207 KiB") if words not in row] == []
    sizes = member.get(f"{LIBRARY}model/cnn/").content.decode()
    assert sizes.index("207 KiB") < sizes.index("MNIST")


def test_it_says_how_a_file_was_shut_in(member: Client, item: Item) -> None:
    assert "in namespaces of its own: no network" in member.get(f"{LIBRARY}{item.pk}/").content.decode()


def test_it_asks_few_questions_however_many_items(
    member: Client, team: Team, bob: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        scene.item(team, bob, name=f"net {number}")
    with django_assert_max_num_queries(20):
        member.get(LIBRARY)


def test_an_item_shows_what_was_found(member: Client, item: Item) -> None:
    page = member.get(f"{LIBRARY}{item.pk}/").content.decode()
    for words in ("digits net", "650", "2.54 KiB", "Jobs train on logits", "logits", "No job has used it"):
        assert words in page


@pytest.mark.parametrize("path", ["dataset/digits/", "model/mlp/", "dataset/mnist/"])
def test_what_is_built_in_has_a_page(member: Client, path: str) -> None:
    assert member.get(f"{LIBRARY}{path}").status_code == 200


def test_it_shows_what_built_in_data_looks_like(member: Client) -> None:
    shown = {name: member.get(f"{LIBRARY}dataset/{name}/").content.decode() for name in ("digits", "wine", "tiny_text")}
    assert "data:image/png;base64," in shown["digits"]
    assert "alcohol" in shown["wine"]
    assert "Alice was beginning" in shown["tiny_text"]
    assert "nothing to show" in member.get(f"{LIBRARY}dataset/mnist/").content.decode()


@pytest.mark.parametrize("path", ["dataset/none/", "strategy/mirrored/", "model/keras_file/", "99/"])
def test_what_is_not_there_is_not_found(member: Client, path: str) -> None:
    assert member.get(f"{LIBRARY}{path}").status_code == 404


def test_a_file_goes_up_over_http(member: Client) -> None:
    content = scene.keras_bytes()
    begun = member.post(
        f"{LIBRARY}uploads", {"filename": "n.keras", "size": len(content), "format": "keras_file", "name": "n"}
    )
    assert begun.status_code == 201
    address = f"{LIBRARY}uploads/{begun.json()['id']}"
    half = len(content) // 2
    first = member.put(f"{address}?offset=0", content[:half], content_type="application/octet-stream")
    assert first.json()["received"] == half
    again = member.put(f"{address}?offset=0", content[:half], content_type="application/octet-stream")
    assert (again.status_code, again.json()["received"]) == (409, half)
    assert member.get(address).json()["received"] == half
    last = member.put(f"{address}?offset={half}", content[half:], content_type="application/octet-stream")
    assert last.json()["state"] == "checking"
    assert member.delete(address).status_code == 204
    assert not Upload.objects.exists()


def test_a_faulty_beginning_is_told_in_words(member: Client, alice: User) -> None:
    answer = member.post(f"{LIBRARY}uploads", {"filename": "n.keras", "size": "many", "format": "keras_file"})
    assert (answer.status_code, answer.json()["problems"][0]["path"]) == (422, "size")
    member.force_login(alice)
    module = {"filename": "n.py", "size": "9", "format": "python_module", "inputs": "8, x", "outputs": "10"}
    assert member.post(f"{LIBRARY}uploads", module).status_code == 201
    wrong = member.post(f"{LIBRARY}uploads", {**module, "inputs": "8, wide"})
    assert wrong.json()["problems"][0]["path"] == "inputs"


def test_it_is_renamed_archived_and_brought_back(member: Client, item: Item) -> None:
    member.post(f"{LIBRARY}{item.pk}/rename", {"name": "better"})
    item.refresh_from_db()
    assert item.name == "better"
    member.post(f"{LIBRARY}{item.pk}/archive")
    assert "is archived" in member.get(LIBRARY).content.decode()
    assert choice(item) not in member.get("/t/vision/jobs/new/").content.decode()
    assert "better" in member.get(f"{LIBRARY}?archived=1").content.decode()
    member.post(f"{LIBRARY}{item.pk}/archive", {"back": "1"})
    item.refresh_from_db()
    assert item.archived is None


def test_a_name_that_is_taken_is_not_given_twice(member: Client, item: Item, team: Team, bob: User) -> None:
    scene.item(team, bob, name="other")
    page = member.post(f"{LIBRARY}{item.pk}/rename", {"name": "other"}, follow=True).content.decode()
    assert "is taken in this team" in page


class TestForm:
    def test_it_offers_the_model_and_trains_with_it(self, member: Client, item: Item) -> None:
        page = member.get(f"/t/vision/jobs/new/?model={choice(item)}").content.decode()
        assert "digits net" in page
        assert "650 parameters" in page
        member.post("/t/vision/jobs/new/", typed(name="mine", model__name=choice(item)))
        job = Job.objects.get()
        spec = parse(job.spec_json)
        assert references(spec)["model"] == item.latest.reference
        assert spec.model.options["facts"]["parameters"] == 650
        assert Use.objects.get().version == item.latest
        assert "mine" in member.get(f"{LIBRARY}{item.pk}/").content.decode()

    def test_a_job_keeps_its_version_and_is_cloned_with_it(
        self, member: Client, item: Item, team: Team, bob: User
    ) -> None:
        member.post("/t/vision/jobs/new/", typed(name="mine", model__name=choice(item)))
        scene.answered(scene.send(team, bob, scene.keras_bytes(), item=item))
        page = member.get(f"/t/vision/jobs/new/?from={Job.objects.get().pk}").content.decode()
        assert f'value="{Use.objects.get().version.format}={Use.objects.get().version.reference}" checked' in page

    def test_data_of_another_shape_is_disabled_with_the_reason(self, member: Client, item: Item) -> None:
        answer = member.post("/t/vision/jobs/new/check", typed(dataset__name="mnist")).json()
        assert "takes examples of 8x8x1" in answer["unfit"]["model.name"][choice(item)]

    def test_a_strategy_that_cannot_hold_its_layers_is_disabled_with_the_reason(
        self, member: Client, team: Team, bob: User
    ) -> None:
        loop = Obstacle(trait="loop", layer="gru", kind="GRU")
        facts = scene.FACTS.model_copy(update={"obstacles": (loop,)})
        version = scene.answered(scene.send(team, bob, scene.keras_bytes()), model=facts)
        assert version is not None
        answer = member.post("/t/vision/jobs/new/check", typed(model__name=choice(version.item))).json()
        assert "DTensor cannot compile its loop" in answer["unfit"]["strategy.name"]["model_parallel"]

    def test_yaml_needs_no_facts_and_cannot_lie_about_them(self, member: Client, item: Item) -> None:
        member.post("/t/vision/jobs/new/", typed(name="mine", model__name=choice(item)))
        text = parse(Job.objects.get().spec_json).to_yaml()
        lie = text.replace("parameters: 650", "parameters: 1")
        assert lie != text
        answer = member.post("/t/vision/jobs/new/check", {"view": "yaml", "yaml": lie}).json()
        assert answer["ok"], answer["problems"]
        assert "parameters: 650" in answer["yaml"]

    def test_it_refuses_a_path_and_a_file_of_another_team(self, member: Client, charlie: User) -> None:
        theirs = scene.item(Team.objects.get(slug="speech"), charlie)
        for value, words in (
            ("keras_file=/etc/passwd", "a file of one host"),
            (choice(theirs), "not in the library of this team"),
        ):
            page = member.post("/t/vision/jobs/new/", typed(name="mine", model__name=value)).content.decode()
            assert words in page
        assert not Job.objects.exists()

    def test_code_is_for_those_who_may_run_it(self, member: Client, team: Team, alice: User, bob: User) -> None:
        upload = scene.send(team, alice, scene.MODULE, filename="net.py", options={"inputs": [8, 8, 1], "outputs": 10})
        version = scene.answered(upload)
        assert version is not None
        sent = typed(name="mine", model__name=choice(version.item))
        assert "you may not run code" in member.post("/t/vision/jobs/new/", sent).content.decode()
        Membership.objects.filter(user=bob).update(code=True)
        assert member.post("/t/vision/jobs/new/", sent).status_code == 303


class TestData:
    def test_a_table_shows_its_columns_and_first_rows(self, member: Client, team: Team, bob: User) -> None:
        leaves = scene.table(team, bob)
        page = member.get(f"{LIBRARY}{leaves.pk}/").content.decode()
        for words in ("leaves", "3 columns", "300", "category", "<td>0.5</td>"):
            assert words in page
        assert "leaves" in member.get(LIBRARY).content.decode()

    def test_a_text_shows_how_it_begins_and_is_continued(self, member: Client, team: Team, bob: User) -> None:
        whale = scene.text(team, bob)
        page = member.get(f"{LIBRARY}{whale.pk}/").content.decode()
        for words in ("Plain text", "Call me Ishmael. Call", "10,200", "10 characters"):
            assert words in page
        chosen = {
            "dataset.name": f"text={whale.latest.reference}",
            "model.name": "transformer_lm",
            "training.global_batch": "32",
        }
        answer = member.post("/t/vision/jobs/new/check", typed(**chosen)).json()
        assert answer["problems"] == []

    def test_a_job_trains_on_it_and_learns_the_last_column_unless_told(
        self, member: Client, team: Team, bob: User
    ) -> None:
        value = choice(scene.table(team, bob))
        page = member.get(f"/t/vision/jobs/new/?dataset={value}").content.decode()
        assert 'name="dataset.csv.target" value="kind"' in page
        assert member.post("/t/vision/jobs/new/", typed(name="mine", dataset__name=value)).status_code == 303
        spec = parse(Job.objects.get().spec_json)
        assert (spec.dataset.options["target"], spec.dataset_info.classes, spec.dataset_info.shape) == ("kind", 2, (2,))

    def test_a_column_that_is_missing_is_told_beside_its_field(self, member: Client, team: Team, bob: User) -> None:
        value = choice(scene.table(team, bob))
        answer = member.post(
            "/t/vision/jobs/new/check", typed(dataset__name=value, dataset__csv__target="colour")
        ).json()
        (problem,) = answer["problems"]
        assert (problem["field"], problem["remedy"]) == ("dataset.csv.target", "Columns: width, height, kind")


ADDRESSES = ["", "upload/", "dataset/digits/", "{item}/", "uploads/{upload}"]


class TestAccess:
    @pytest.mark.parametrize("address", ADDRESSES)
    def test_a_stranger_finds_nothing(self, client: Client, charlie: User, item: Item, address: str) -> None:
        client.force_login(charlie)
        path = address.format(item=item.pk, upload=Upload.objects.get().pk)
        assert client.get(LIBRARY + path).status_code == 404

    @pytest.mark.parametrize("address", ["{item}/rename", "{item}/archive", "uploads"])
    def test_a_stranger_changes_nothing(self, client: Client, charlie: User, item: Item, address: str) -> None:
        client.force_login(charlie)
        assert client.post(LIBRARY + address.format(item=item.pk)).status_code == 404

    @pytest.mark.parametrize("address", ["{item}/rename", "{item}/archive", "uploads"])
    def test_a_reader_changes_nothing(self, client: Client, rita: User, item: Item, address: str) -> None:
        client.force_login(rita)
        assert client.post(LIBRARY + address.format(item=item.pk)).status_code == 403
        assert client.get(f"{LIBRARY}{item.pk}/").status_code == 200

    @pytest.mark.parametrize("address", ADDRESSES)
    def test_an_anonymous_visitor_is_sent_to_the_login(self, client: Client, item: Item, address: str) -> None:
        path = address.format(item=item.pk, upload=Upload.objects.get().pk)
        assert client.get(LIBRARY + path).status_code == 302

    def test_an_item_of_another_team_is_not_found_under_this_one(self, member: Client, charlie: User) -> None:
        theirs = scene.item(Team.objects.get(slug="speech"), charlie)
        assert member.get(f"{LIBRARY}{theirs.pk}/").status_code == 404


def test_every_format_has_its_plugin() -> None:
    from workers.contract import catalog

    for name, one in FORMATS.items():
        assert "file" in catalog.find(one.kind, name).options.model_fields
