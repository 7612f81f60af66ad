"""The one way in which tests wait: for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")


def wait_for(condition: Callable[[], T], *, seconds: float = 20.0, what: str = "the condition") -> T:
    """The first truthy answer of `condition`; fails the test when `seconds` have passed without one."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.02)
    pytest.fail(f"waited {seconds} s for {what}")
