from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from webapp.cluster.placing import Offer, Waiting, place
from workers.contract import catalog
from workers.contract.layout import Layout, ProcessAssignment, ProcessShape


def offer(
    host: str, *, cpu: int = 0, gpu: int = 0, free_cpu: Any = None, free_gpu: Any = None, **changes: Any
) -> Offer:
    total = {"cpu": tuple(range(cpu)), "gpu": tuple(range(gpu))}
    free = {
        "cpu": total["cpu"] if free_cpu is None else tuple(free_cpu),
        "gpu": total["gpu"] if free_gpu is None else tuple(free_gpu),
    }
    return Offer(host=host, address=f"{host}.local", total=total, free=free, **changes)


def workers(count: int, devices: int = 1, **changes: Any) -> Layout:
    return Layout(processes=tuple(ProcessShape(index=i, devices=devices, **changes) for i in range(count)))


def placed(layout: Layout, *offers: Offer) -> tuple[ProcessAssignment, ...]:
    plan = place(layout, offers)
    assert not isinstance(plan, Waiting), plan
    return plan


def reason(layout: Layout, *offers: Offer) -> str:
    plan = place(layout, offers)
    assert isinstance(plan, Waiting), plan
    return plan.reason


def test_it_puts_all_on_one_host_and_lets_its_supervisor_pick_the_ports() -> None:
    plan = placed(workers(2), offer("big", cpu=8), offer("small", cpu=2))
    assert [(p.name, p.host, p.devices, p.replicas, p.port) for p in plan] == [
        ("worker-0", "small", (0,), (0,), 0),
        ("worker-1", "small", (1,), (1,), 0),
    ]


def test_it_spreads_over_hosts_with_ports_that_no_live_job_has() -> None:
    first = offer("a", cpu=1, port_range=(20000, 20002), taken_ports=frozenset({20000, 20001}))
    plan = placed(workers(2), first, offer("b", cpu=1, port_range=(20000, 20000)))
    assert sorted((p.host, p.address, p.port) for p in plan) == [("a", "a.local", 20002), ("b", "b.local", 20000)]
    assert sorted(p.replicas for p in plan) == [(0,), (1,)]


def test_it_gives_hosts_of_one_machine_different_ports() -> None:
    shared = {"cpu": 1, "port_range": (20000, 20001)}
    twins = [dataclasses.replace(offer(host, **shared), address="127.0.0.1") for host in ("a", "b")]
    assert {p.port for p in placed(workers(2), *twins)} == {20000, 20001}


def test_it_does_not_insist_on_a_port_that_another_program_may_have() -> None:
    hosts = offer("a", cpu=1), offer("b", cpu=1)
    assert len({placed(workers(2), *hosts)[0].port for _ in range(20)}) > 1


def test_it_gives_two_processes_of_one_host_different_ports() -> None:
    plan = placed(workers(3), offer("a", cpu=2), offer("b", cpu=1))
    assert len({(p.host, p.port) for p in plan}) == 3 and all(p.port for p in plan)


def test_it_prefers_gpus_where_there_are_enough_even_busy_ones() -> None:
    assert placed(workers(1), offer("h", cpu=2, gpu=1))[0].kind == "gpu"
    assert reason(workers(1), offer("h", cpu=2, gpu=1, free_gpu=())) == "waiting for 1 GPU"
    assert placed(workers(2), offer("h", cpu=2, gpu=1))[0].kind == "cpu"


def test_it_keeps_to_the_kind_and_the_indexes_asked_for() -> None:
    assert placed(workers(1, kind="cpu"), offer("h", cpu=2, gpu=1))[0].kind == "cpu"
    [process] = placed(workers(1, 2, indexes=(1, 3), kind="gpu"), offer("h", gpu=4))
    assert process.devices == (1, 3)


def test_it_numbers_replicas_through_split_devices() -> None:
    plan = placed(workers(2, split=2), offer("h", cpu=2))
    assert [p.replicas for p in plan] == [(0, 1), (2, 3)]


def test_it_seats_a_process_without_devices_beside_the_others() -> None:
    layout = Layout(processes=(ProcessShape(role="ps", devices=0, computes=False), *workers(2).processes))
    plan = placed(layout, offer("idle"), offer("h", cpu=2))
    assert (plan[0].name, plan[0].host, plan[0].kind, plan[0].devices) == ("ps-0", "h", "cpu", ())
    assert [p.replicas for p in plan] == [(), (0,), (1,)]


def test_it_seats_chief_and_parameter_servers_beside_the_workers_of_a_job() -> None:
    entry = catalog.find("strategy", "parameter_server")
    layout = entry.module.layout(entry.parse({"workers": 2, "parameter_servers": 1}))
    plan = placed(layout, offer("a", cpu=1, gpu=1), offer("b", cpu=1, gpu=1))
    assert [(p.name, p.kind, len(p.devices), p.replicas, p.essential) for p in plan] == [
        ("chief-0", "cpu", 0, (), True),
        ("worker-0", "gpu", 1, (0,), False),
        ("worker-1", "gpu", 1, (1,), False),
        ("ps-0", "cpu", 0, (), True),
    ]
    assert all(p.port for p in plan)
    assert len({(p.host, p.port) for p in plan}) == 4


@pytest.mark.parametrize(
    ("layout", "offers", "expected"),
    [
        (workers(1), [], "waiting for a training host, none is online"),
        (workers(3), [offer("h", cpu=3, free_cpu=(0,))], "waiting for 2 more CPU devices"),
        (workers(2), [offer("h", cpu=2, free_cpu=())], "waiting for 2 CPU devices"),
        (workers(3), [offer("h", cpu=2)], "needs 3 CPU devices, the hosts have 2"),
        (
            workers(1, 2, kind="gpu"),
            [offer("a", gpu=2, free_gpu=(0,)), offer("b", gpu=2, free_gpu=(1,))],
            "waiting for 2 free GPUs on one host",
        ),
        (
            workers(1, 2, kind="gpu"),
            [offer("a", gpu=1), offer("b", gpu=1)],
            "needs 2 GPUs on one host, the largest has 1",
        ),
        (workers(1, 1, indexes=(7,), kind="gpu"), [offer("a", gpu=2)], "names gpu:7, which no host has"),
        (
            workers(1, 1, indexes=(1,), kind="gpu"),
            [offer("a", gpu=2, free_gpu=(0,))],
            "waiting for gpu:1 to be free on one host",
        ),
        (
            workers(2),
            [offer("a", cpu=1, port_range=(5, 5), taken_ports=frozenset({5})), offer("b", cpu=1)],
            "waiting for a free port between 5 and 5 on a",
        ),
    ],
)
def test_it_says_in_words_what_is_missing(layout: Layout, offers: list[Offer], expected: str) -> None:
    assert reason(layout, *offers) == expected
