"""`manage.py logs JOB` prints what there is, follows what comes, and its exit code says how the job ended."""

from __future__ import annotations

import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.conftest import wait_for
from tests.webapp.jobs.scene import queue
from webapp.ingest.models import LogLine
from webapp.jobs.models import Job, State


@pytest.fixture
def job(team, alice, seed_spec):
    return queue(team, alice, seed_spec)


def write(job, *texts, stream="stdout"):
    LogLine.objects.bulk_create(
        [LogLine(job=job, attempt=1, process="worker-0", stream=stream, time=1.0, text=text) for text in texts]
    )


@pytest.mark.django_db
def test_it_prints_what_there_is(job, capsys):
    write(job, "one", "two")
    write(job, "oh", stream="stderr")
    call_command("logs", str(job.pk))
    assert capsys.readouterr().out == "worker-0 | one\nworker-0 | two\nworker-0 ! oh\n"
    call_command("logs", str(job.pk), stream="stderr")
    assert capsys.readouterr().out == "worker-0 ! oh\n"


@pytest.mark.django_db
def test_it_names_a_job_that_is_not_there():
    with pytest.raises(CommandError, match="no job 'x'"):
        call_command("logs", "x")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("state", "code"), [(State.SUCCEEDED, 0), (State.FAILED, 1), (State.CANCELLED, 1)])
def test_it_follows_to_the_end(job, capsys, monkeypatch, state, code):
    monkeypatch.setattr("webapp.live.management.commands.logs.LAST_WORDS_SECONDS", 0.3)
    monkeypatch.setattr("webapp.live.management.commands.logs.POLL_SECONDS", 0.05)
    codes = []

    def follow():
        try:
            call_command("logs", str(job.pk), follow=True)
            codes.append(0)
        except SystemExit as end:
            codes.append(end.code)
        finally:
            connection.close()

    write(job, "early")
    thread = threading.Thread(target=follow)
    thread.start()
    printed = ""

    def has(text):
        nonlocal printed
        printed += capsys.readouterr().out
        return text in printed

    wait_for(lambda: has("early"), what="the first line")
    write(job, "late")
    wait_for(lambda: has("late"), what="the second line")
    assert thread.is_alive()
    Job.objects.filter(pk=job.pk).update(state=state, cause="so it was")
    write(job, "last words")
    thread.join(timeout=20)
    assert has("last words")
    assert codes == [code]
