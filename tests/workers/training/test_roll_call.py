"""Who of a job is gone, found out with real sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tests.workers.training.conftest import seed_with
from workers.contract.assignment import Place
from workers.contract.spec import parse
from workers.training.here import place_here
from workers.training.servers import roll_call
from workers.training.servers.roll_call import Answers, PeerLost, RollCall


class Job:
    """The sockets of two workers and a parameter server, and the roll call of their chief."""

    def __init__(self, run: Path) -> None:
        spec = parse(seed_with(strategy={"name": "parameter_server", "options": {"workers": 2}}))
        self.sockets: dict[str, socket.socket] = {}
        processes = []
        for process in place_here(spec):
            self.sockets[process.name] = socket.create_server(("127.0.0.1", 0), backlog=64)
            port = self.sockets[process.name].getsockname()[1]
            processes.append(process.model_copy(update={"port": port}))
        self.roll_call = RollCall(Place(spec=spec, process=processes[0], processes=tuple(processes), run=str(run)))
        self.roll_call.wait_for_all()
        self.roll_call.start()

    def lose(self, *names: str) -> None:
        for name in names:
            self.sockets[name].close()
        wait_for(lambda: self.roll_call.gone >= set(names), what="the roll call to notice")


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for each in made.sockets.values():
        each.close()


def test_it_finds_nobody_missing_while_all_listen(job: Job) -> None:
    job.roll_call.blame()
    assert job.roll_call.news() == ""


def test_it_tells_once_how_many_workers_are_left(job: Job) -> None:
    job.lose("worker-1")
    job.roll_call.check()
    assert job.roll_call.news() == "worker-1 ended; training goes on with 1 of 2 workers"
    assert job.roll_call.news() == ""


def test_it_does_not_go_on_without_a_parameter_server(job: Job) -> None:
    job.sockets["ps-0"].close()
    with pytest.raises(PeerLost, match=r"^ps-0 ended"):
        job.roll_call.blame()


def test_it_does_not_go_on_without_any_worker(job: Job) -> None:
    job.lose("worker-0", "worker-1")
    with pytest.raises(PeerLost, match=r"^All workers ended \(worker-0, worker-1\)"):
        job.roll_call.check()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roll_call, "HANG_SECONDS", -1.0)


@pytest.mark.usefixtures("impatient")
def test_it_names_the_worker_that_listens_but_brings_nothing_back() -> None:
    answers = Answers(["worker-0", "worker-1", "worker-2"])
    for worker in ("worker-0", "worker-1", "worker-2", "worker-0", "worker-2"):
        answers.note(worker)
    with pytest.raises(PeerLost, match=r"^worker-1 listens but has not brought back its steps"):
        answers.check(set())
    with pytest.raises(PeerLost, match=r"^worker-0 listens"):
        answers.check({"worker-1"})


@pytest.mark.usefixtures("impatient")
def test_it_lets_workers_compile_before_it_expects_an_answer() -> None:
    answers = Answers(["worker-0", "worker-1"])
    answers.note("worker-0")
    answers.check(set())
    answers.check({"worker-0", "worker-1"})
