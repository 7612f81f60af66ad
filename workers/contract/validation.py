"""Pydantic's errors in our words: the dotted path, the value, and what would be accepted instead."""

from __future__ import annotations

import difflib
import typing
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from workers.contract.problems import Problem


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Every error as a Problem, its path as a person wrote it."""
    return [_problem(detail, model) for detail in error.errors(include_url=False)]


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    path = ".".join(str(part) for part in detail["loc"])
    kind = detail["type"]
    if kind == "missing":
        return Problem(path, "is required", None, "Add it")
    if kind == "extra_forbidden":
        known = _fields_at(model, detail["loc"][:-1])
        close = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1)
        remedy = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(known)}" if known else "Remove it"
        return Problem(path, "is not a known field", detail["input"], remedy)
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return Problem(path, message[:1].lower() + message[1:], detail["input"], "")


def _fields_at(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    current: Any = model
    for part in path:
        field = getattr(current, "model_fields", {}).get(part)
        current = field.annotation if field is not None else _tagged(current, part)
    return list(getattr(current, "model_fields", {}))


def _tagged(union: Any, tag: object) -> Any:
    """The member of a discriminated union that pydantic means by `tag` in a path; None for anything else."""
    for member in typing.get_args(union):
        if any(field.default == tag for field in getattr(member, "model_fields", {}).values()):
            return member
    return None
