from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.webapp.cluster.hosts import hear, tried
from tests.webapp.jobs import scene
from webapp.cluster import admission
from webapp.cluster.clock import database_now
from webapp.cluster.models import Device, Host
from webapp.teams.models import Team, User
from workers.contract.spec import JobSpec, parse

Spec = dict[str, Any]


def spec_of(base: Spec, **strategy: Any) -> JobSpec:
    name = strategy.pop("name", "multi_worker_mirrored")
    return parse({**base, "strategy": {"name": name, "options": strategy}})


def test_it_accepts_anything_while_no_host_is_known(db: None, seed_spec: Spec) -> None:
    assert admission.problems(parse(seed_spec)) == []
    assert admission.outlook(parse(seed_spec)).reason == "waiting for a training host, none is online"


def test_it_accepts_what_fits_even_when_it_has_to_wait(team: Team, alice: User, seed_spec: Spec) -> None:
    hear("h1", cpus=2)
    attempt = scene.launch(scene.queue(team, alice, seed_spec), "h1")
    Device.objects.update(attempt=attempt)
    scene.queue(team, alice, seed_spec)
    assert admission.problems(parse(seed_spec)) == []
    outlook = admission.outlook(parse(seed_spec))
    assert (outlook.can_start_now, outlook.reason, outlook.ahead) == (False, "waiting for 2 CPU devices", 1)


def test_it_shows_what_would_start_where(db: None, seed_spec: Spec) -> None:
    hear("h1", cpus=2)
    outlook = admission.outlook(parse(seed_spec))
    assert outlook.can_start_now
    assert [(p.process, p.host, p.devices, p.replicas) for p in outlook.placements] == [
        ("worker-0", "h1", ("cpu:0",), (0,)),
        ("worker-1", "h1", ("cpu:1",), (1,)),
    ]


@pytest.mark.parametrize(
    ("strategy", "path", "words"),
    [
        ({"workers": 8}, "strategy.options", "needs 8 CPU devices, the hosts have 3"),
        ({"name": "mirrored", "devices": [0, 9]}, "strategy.options", "names cpu:9, which no host has"),
        ({"name": "mirrored", "device_type": "gpu"}, "strategy.options", "needs 2 GPUs, the hosts have 0"),
        ({"workers": 2, "communication": "nccl"}, "strategy.options.communication", "needs GPUs"),
        (
            {"name": "mirrored", "cross_device_ops": "nccl"},
            "strategy.options.cross_device_ops",
            "no host has enough GPUs",
        ),
    ],
)
def test_it_refuses_what_no_host_has(db: None, seed_spec: Spec, strategy: Any, path: str, words: str) -> None:
    hear("h1", cpus=2)
    hear("h2", cpus=1)
    [problem] = admission.problems(spec_of(seed_spec, **strategy))
    assert problem.path == path and words in problem.message and problem.remedy


def test_it_lets_nccl_pass_where_there_are_gpus(db: None, seed_spec: Spec) -> None:
    hear("h1", cpus=2, gpus=2)
    assert admission.problems(spec_of(seed_spec, workers=2, communication="nccl")) == []


def test_it_refuses_a_dataset_that_no_online_host_can_load(db: None, seed_spec: Spec) -> None:
    hear("h1", unavailable={"digits": "scikit-learn is missing"})
    [problem] = admission.problems(parse(seed_spec))
    assert problem.path == "dataset.name" and problem.remedy == "h1: scikit-learn is missing"
    hear("h2")
    assert admission.problems(parse(seed_spec)) == []
    assert {p.host for p in admission.outlook(parse(seed_spec)).placements} == {"h2"}


def test_it_counts_a_host_that_restarts_but_not_one_gone_for_a_day(db: None, seed_spec: Spec) -> None:
    hear("small", cpus=1)
    hear("big", cpus=2)
    Host.objects.filter(name="big").update(heard=database_now() - timedelta(hours=1))
    assert admission.problems(spec_of(seed_spec, name="mirrored")) == []
    Host.objects.filter(name="big").update(heard=database_now() - timedelta(days=2))
    assert len(admission.problems(spec_of(seed_spec, name="mirrored"))) == 1


PLAIN = "multi_worker_mirrored/mean/none/plain"
XLA = "multi_worker_mirrored/mean/none/xla"


def test_it_refuses_what_failed_in_the_self_test_of_every_host(db: None, seed_spec: Spec) -> None:
    hear("h1", selftest=tried({XLA: "XLA said no."}, PLAIN))
    seed_spec["training"]["jit"] = True
    [problem] = admission.problems(parse(seed_spec))
    assert problem.path == "training.jit"
    assert problem.message == "failed in the self-test of h1: XLA said no"
    assert problem.remedy == "Switch it off"
    seed_spec["training"]["jit"] = False
    assert admission.problems(parse(seed_spec)) == []


def test_it_blames_the_strategy_when_nothing_else_is_known_to_work(db: None, seed_spec: Spec) -> None:
    hear("h1", selftest=tried({PLAIN: "Boom."}))
    [problem] = admission.problems(parse(seed_spec))
    assert problem.path == "strategy.name"


def test_a_job_that_takes_no_steps_is_judged_by_what_works_under_its_strategy(db: None, seed_spec: Spec) -> None:
    evaluating = parse({**seed_spec, "kind": "evaluate", "training": {}})
    hear("h1", selftest=tried({PLAIN: "The gradients are off."}, XLA))
    assert len(admission.problems(parse(seed_spec))) == 1
    assert admission.problems(evaluating) == []
    assert admission.outlook(evaluating).can_start_now
    hear("h1", selftest=tried({PLAIN: "It does not start."}, PLAIN.replace("none", "float16")))
    [problem] = admission.problems(evaluating)
    assert (problem.path, problem.message) == ("strategy.name", "failed in the self-test of h1: It does not start")
    half = parse({**seed_spec, "kind": "evaluate", "training": {"mixed_precision": "float16"}})
    hear("h1", selftest=tried({PLAIN.replace("none", "float16"): "It does not start."}, XLA))
    [problem] = admission.problems(half)
    assert (problem.path, problem.remedy) == ("training.mixed_precision", "Use none")


def test_it_counts_on_hosts_where_it_did_not_fail(db: None, seed_spec: Spec) -> None:
    hear("h1", cpus=4, selftest=tried({PLAIN: "Boom."}))
    hear("h2")
    assert admission.problems(parse(seed_spec)) == []
    assert {p.host for p in admission.outlook(parse(seed_spec)).placements} == {"h2"}
    assert len(admission.problems(spec_of(seed_spec, workers=4))) == 1, "h2 alone is too small for it"


def test_it_says_the_lack_of_devices_before_what_the_self_test_showed(db: None, seed_spec: Spec) -> None:
    hear("h1", selftest=tried({PLAIN: "Boom."}))
    [problem] = admission.problems(spec_of(seed_spec, workers=8))
    assert "needs 8 CPU devices" in problem.message
