"""Specs and assignments for the stand-in engine."""

from __future__ import annotations

from workers.contract.layout import ProcessAssignment
from workers.contract.spec import Choice, JobSpec, Training

STANDIN = "tests.workers.host.standin"


def spec_with(*tags: str) -> JobSpec:
    """A spec whose tags tell the stand-in what to do."""
    return JobSpec(
        name="stand-in",
        dataset=Choice(name="digits"),
        model=Choice(name="mlp"),
        strategy=Choice(name="multi_worker_mirrored"),
        training=Training(epochs=1),
        tags=tags,
    )


def assignments(
    workers: int, *, hosts: tuple[str, ...] = ("here",), ports: tuple[int, ...] = (0,), address: str = "127.0.0.1"
) -> tuple[ProcessAssignment, ...]:
    """`worker-0` and so on, each with one CPU slot, hosts and ports dealt in turn."""
    return tuple(
        ProcessAssignment(
            name=f"worker-{i}",
            role="worker",
            index=i,
            host=hosts[i % len(hosts)],
            address=address,
            port=ports[i % len(ports)],
            kind="cpu",
            devices=(i,),
            replicas=(i,),
        )
        for i in range(workers)
    )
