"""Checkpoints of a job that nobody has run: of a linear model on the digits, 10 steps of 128 examples an epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.seed import SEED_SPEC
from workers.contract.spec import JobSpec, parse
from workers.training.checkpointing import checkpoints
from workers.training.checkpointing.checkpoints import Manifest


def linear(**training: Any) -> JobSpec:
    """The job."""
    changed = {"epochs": 10, "global_batch": 128, **training}
    changed = {name: value for name, value in changed.items() if value is not None}
    return parse({**SEED_SPEC, "model": {"name": "linear"}, "strategy": {"name": "one_device"}, "training": changed})


def manifest(step: int, spec: JobSpec | None = None, **changes: Any) -> Manifest:
    """What its checkpoint says before it is written."""
    spec = spec or linear()
    seen = step * spec.samples_per_step
    return Manifest(name=f"step-{step}", step=step, samples_seen=seen, time=0.0, spec=spec, **changes)


def written(folder: Path, *steps: int, spec: JobSpec | None = None) -> list[Path]:
    """Whole checkpoints of these steps, all weights as large as the step."""
    for step in steps:
        arrays = {"model/logits/kernel": np.full((64, 10), step, np.float32), "model/logits/bias": np.zeros(10)}
        checkpoints.write(folder, manifest(step, spec), arrays)
    return [folder / f"step-{step}" for step in steps]
