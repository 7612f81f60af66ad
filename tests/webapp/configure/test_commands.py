from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.webapp.cluster.hosts import hear
from tests.webapp.jobs import scene
from webapp.jobs import services, waiting
from webapp.jobs.models import Checkpoint, Job, State
from webapp.teams.models import Team, User


@pytest.fixture
def document(tmp_path: Path, seed_spec: dict[str, Any]) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(seed_spec))
    return path


def run(*command: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(*map(str, command), stdout=out, stderr=options.pop("stderr", io.StringIO()), **options)
    return out.getvalue()


def refused(*command: Any) -> str:
    with pytest.raises(CommandError) as error:
        run(*command)
    assert error.value.returncode == 1
    return str(error.value)


def test_it_accepts_a_document_for_the_only_team_and_its_owner(team: Team, alice: User, document: Path) -> None:
    assert run("submit", document) == f"job {Job.objects.get().pk} accepted: digits on two workers\n"
    assert Job.objects.get().owner == alice


def test_it_prints_the_job_as_one_document(team: Team, bob: User, document: Path) -> None:
    message = json.loads(run("submit", document, "--team", "vision", "--user", "bob", "--json"))
    assert (message["type"], message["owner"], message["state"]) == ("job", "bob", "queued")


def test_it_lists_every_problem_of_a_document(team: Team, alice: User, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("version: lockstep/v1\nname: x\ndataset: {name: digit}\ncolour: red\n")
    told = refused("submit", path)
    for field in ("colour", "model", "strategy", "training"):
        assert f"  {field}: " in told
    assert not Job.objects.exists()


def test_it_lists_what_the_cluster_refuses(team: Team, alice: User, document: Path) -> None:
    hear("h1", cpus=1)
    assert "strategy.options: needs 2 CPU devices, the hosts have 1" in refused("submit", document)


def test_it_says_what_is_wrong_with_file_team_and_user(team: Team, rita: User, document: Path) -> None:
    assert "cannot be read" in refused("submit", document.parent / "none.yaml")
    assert "Known: vision" in refused("submit", document, "--team", "sound")
    assert "has no owner" in refused("submit", document)
    assert "no user 'zoe'" in refused("submit", document, "--user", "zoe")
    assert "may only read" in refused("submit", document, "--user", "rita")
    Team.objects.create(slug="speech", name="Speech")
    assert "say which team" in refused("submit", document)


@pytest.mark.parametrize(("state", "code"), [(State.SUCCEEDED, 0), (State.FAILED, 1), (State.CANCELLED, 1)])
def test_it_waits_for_the_end_and_exits_by_it(
    team: Team, alice: User, document: Path, monkeypatch: pytest.MonkeyPatch, state: State, code: int
) -> None:
    steps = iter([{"state": State.RUNNING, "processes_up": 2, "phase": "training", "step": 7}, {"state": state}])
    monkeypatch.setattr(waiting.time, "sleep", lambda _: Job.objects.update(**next(steps)))
    out = io.StringIO()
    try:
        call_command("submit", str(document), "--wait", stdout=out)
        left = 0
    except SystemExit as exit_:
        left = int(exit_.code or 0)
    assert left == code
    lines = out.getvalue().splitlines()
    assert lines[1].endswith(" queued") and "step 7 of" in lines[2]
    assert State(state).label in out.getvalue()


def test_it_leaves_the_job_running_on_control_c(
    team: Team, alice: User, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting.time, "sleep", interrupt)
    errors = io.StringIO()
    with pytest.raises(SystemExit) as exit_:
        run("submit", document, "--wait", stderr=errors)
    assert exit_.value.code == 130
    assert "goes on" in errors.getvalue() and Job.objects.get().state == State.QUEUED


def test_it_lists_jobs_for_people_and_scripts(team: Team, alice: User, document: Path) -> None:
    assert "No jobs yet" in run("jobs")
    run("submit", document)
    run("submit", document)
    newest, oldest = Job.objects.order_by("-id")
    table = run("jobs").splitlines()
    assert table[0].split()[:3] == ["id", "state", "name"]
    assert [line.split()[0] for line in table[1:]] == [str(newest.pk), str(oldest.pk)]
    assert [row["id"] for row in json.loads(run("jobs", "--json", "--limit", "1"))] == [newest.pk]
    assert json.loads(run("jobs", "--json", "--state", "failed")) == []
    assert "Known: vision" in refused("jobs", "--team", "nobody")


def test_it_shows_a_failed_job_with_its_cause_and_log(team: Team, alice: User, document: Path) -> None:
    run("submit", document)
    Job.objects.update(state=State.FAILED, cause="Out of memory.", failed_process="worker-1", log_tail="boom\n")
    shown = run("show", Job.objects.get().pk)
    assert "Failed" in shown and "Out of memory." in shown and shown.endswith("worker-1:\nboom\n")
    assert json.loads(run("show", Job.objects.get().pk, "--json"))["spec"]["dataset"]["name"] == "digits"


def test_it_stops_a_job_once(team: Team, alice: User, rita: User, document: Path) -> None:
    run("submit", document)
    job = Job.objects.get()
    assert "may not change" in refused("stop", job.pk, "--user", "rita")
    assert "cancelled" in run("stop", job.pk)
    assert "has ended already" in refused("stop", job.pk)
    assert not services.request_stop(job=job, by=None)


@pytest.mark.parametrize("given", ["99", "abc", "-1", "9" * 30])
@pytest.mark.parametrize("command", ["show", "stop", "pause", "resume"])
def test_it_says_how_to_find_an_unknown_job(db: None, command: str, given: str) -> None:
    assert "manage.py jobs" in refused(command, "--", given)


def test_it_pauses_and_resumes_a_job(team: Team, alice: User, rita: User, document: Path) -> None:
    run("submit", str(document))
    job = Job.objects.get()
    assert "nothing to pause" in refused("pause", job.pk)
    attempt = scene.launch(job, "h1")
    assert "may not change" in refused("pause", job.pk, "--user", "rita")
    assert f"job {job.pk} pausing" in run("pause", job.pk)
    assert "cannot go on" in refused("resume", job.pk)
    Checkpoint.objects.create(job=job, attempt=attempt, name="step-7", step=7, stored=timezone.now())
    Job.objects.update(state=State.PAUSED)
    assert "queued (resumes from step 7)" in run("resume", job.pk)
