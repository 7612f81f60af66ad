"""Every model as it is built, against what is told of it; losses and learning rates as the device computes them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.training.conftest import run_script

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def faults() -> dict[str, Any]:
    return run_script("models_built.py")


@pytest.mark.parametrize("claim", ["counts", "kernels", "saving", "causality", "ids", "losses", "schedules", "players"])
def test_it_keeps_its_claim(claim: str, faults: dict[str, Any]) -> None:
    assert faults[claim] == []
