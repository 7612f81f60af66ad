"""Processes that start other processes get a minute, since the machine may be busy with everybody's tests."""

from __future__ import annotations

import functools

from tests import waiting

wait_for = functools.partial(waiting.wait_for, seconds=60.0)
