"""What every look at a file is held to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workers.contract.files.facts import Facts
from workers.contract.problems import SpecInvalid

Inspect = Callable[[Path], Facts]


def fault(inspect: Inspect, path: Path) -> str:
    with pytest.raises(SpecInvalid) as caught:
        inspect(path)
    [problem] = caught.value.problems
    assert problem.path == "file"
    assert problem.remedy
    return str(problem)
