"""A real asynchronous job under a real supervisor: it outlives a worker, and nobody lingers once the chief is done."""

from __future__ import annotations

import os
import signal

import pytest

from tests.conftest import RedisServer
from tests.workers.host.acknowledging import Receiver
from tests.workers.host.conftest import Host
from tests.workers.host.patience import wait_for
from workers.contract.assignment import Assignment
from workers.contract.events import Exited, Points, Spawned
from workers.contract.spec import parse
from workers.training.here import place_here

JOB = {
    "name": "digits on parameter servers",
    "dataset": {"name": "digits"},
    "model": {"name": "mlp", "options": {"units": [32], "dropout": [0]}},
    "strategy": {"name": "parameter_server", "options": {"workers": 2, "device_type": "cpu"}},
    "training": {"epochs": 40, "global_batch": 128},
}


@pytest.mark.tensorflow
def test_it_tells_a_lost_worker_and_the_success_without_it(host: Host, redis_server: RedisServer) -> None:
    spec = parse(JOB)
    processes = tuple(process.model_copy(update={"host": "here"}) for process in place_here(spec))
    run = host.run_folder()
    run.accept(Assignment(job=7, attempt=1, spec=spec, processes=processes).model_dump(mode="json"))
    del host.env["LOCKSTEP_ENGINE"]
    with Receiver(redis_server.client()) as receiver:
        host.start("workers.host.supervisor", str(run.path))

        def of_worker_1() -> bool:
            points = [event for event in receiver.events(1, "chief-0") if isinstance(event, Points)]
            return any(series.replica == 1 for event in points for series in event.series)

        wait_for(of_worker_1, seconds=120, what="points of worker-1")
        told = receiver.events(1, "supervisor@here")
        os.kill(next(e.pid for e in told if isinstance(e, Spawned) and e.target == "worker-1"), signal.SIGKILL)
        ended = wait_for(lambda: receiver.end(1), seconds=120, what="the end")
        assert (ended.outcome, ended.cause) == ("succeeded", "")
        exits = {e.target: e for e in receiver.events(1, "supervisor@here") if isinstance(e, Exited)}
        assert exits.pop("worker-1").signal == "SIGKILL"
        assert {name: end.code for name, end in exits.items()} == {"chief-0": 0, "worker-0": 0, "ps-0": 0}
        assert abs(exits["worker-0"].time - exits["chief-0"].time) < 10
