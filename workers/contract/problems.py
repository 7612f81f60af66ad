"""What is wrong with an input, said so that a person can mend it: the path, the value, the remedy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Problem:
    """One fault of one input.

    `path` is dotted as in the YAML (`training.global_batch`), empty for the whole document; `message` says what is
    wrong and `remedy` what would work. `value` is what was given.
    """

    path: str
    message: str
    value: Any = None
    remedy: str = ""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        what = f" (got {shorten(self.value)})" if self.value is not None else ""
        return f"{where}{self.message}{what}{'. ' + self.remedy if self.remedy else ''}"

    def under(self, prefix: str) -> Problem:
        """The same problem, seen from one level further out."""
        return dataclasses.replace(self, path=f"{prefix}.{self.path}" if self.path else prefix)

    def as_dict(self) -> dict[str, Any]:
        """For JSON answers; the value becomes text."""
        given = None if self.value is None else shorten(self.value)
        return {"path": self.path, "message": self.message, "value": given, "remedy": self.remedy}


class SpecInvalid(ValueError):
    """Raised with every problem found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def shorten(value: object, limit: int = 80) -> str:
    """The value as a person typed it, cut in the middle to one line of `limit` characters."""
    text = value or '""' if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    head = limit // 2
    return text if len(text) <= limit else f"{text[:head]}…{text[head + 1 - limit :]}"
