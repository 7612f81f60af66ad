"""Pydantic's errors in our words: the dotted path, the value, and what would be accepted instead."""

from __future__ import annotations

import difflib
import json
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from workers.contract.problems import Problem, shorten

WHOLE, NUMBER, TRUTH = "must be a whole number", "must be a number", "must be true or false"
TEXT, LIST, GROUP = "must be text", "must be a list", "takes fields of its own"
WORDS = {
    "int_type": WHOLE,
    "int_parsing": WHOLE,
    "int_parsing_size": WHOLE,
    "int_from_float": WHOLE,
    "float_type": NUMBER,
    "float_parsing": NUMBER,
    "finite_number": "must be a finite number",
    "bool_type": TRUTH,
    "bool_parsing": TRUTH,
    "string_type": TEXT,
    "tuple_type": LIST,
    "list_type": LIST,
    "dict_type": GROUP,
    "model_type": GROUP,
    "model_attributes_type": GROUP,
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be greater than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "is not written as it has to be",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "literal_error": "must be {expected}",
}
"""By pydantic's name of the error; its context fills in the numbers. Those of our own validators are words already."""


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Every error as a Problem, its path as a person wrote it."""
    details = error.errors(include_url=False)
    # Of a list whose members are all refused pydantic also says that too few are left.
    faulty = {detail["loc"][:-1] for detail in details}
    return [_problem(one, model) for one in details if one["type"] != "too_short" or one["loc"] not in faulty]


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    place, kind, given = detail["loc"], detail["type"], detail["input"]
    path = ".".join(str(part) for part in place)
    if kind == "missing":
        return Problem(path, "is required", None, _wanted(_at(model, place[:-1]), str(place[-1])))
    if kind in ("extra_forbidden", "invalid_key"):
        return Problem(path, "is not a known field", given, _meant(str(place[-1]), model, place[:-1]))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        name = given.get("name") if isinstance(given, Mapping) else given
        return Problem(f"{path}.name", f"must be one of {', '.join(_tags(_at(model, place)))}", name)
    if kind not in WORDS:
        message = detail["msg"].removeprefix("Value error, ").rstrip(".")
        return Problem(path, message[:1].lower() + message[1:], given)
    if given is None:
        return Problem(path, "has no value", None, "Give it one")
    limits = {key: plain(value) for key, value in detail.get("ctx", {}).items()}
    return Problem(path, WORDS[kind].format(**limits), given, _remedy(detail, model))


def _wanted(model: Any, name: str) -> str:
    field = _fields(model).get(name)
    words = typing.get_args(field.annotation) if field and typing.get_origin(field.annotation) is typing.Literal else ()
    return f"Add it: {' or '.join(words)}" if words else "Add it"


def plain(value: object) -> str:
    """A limit as people write it: 10,000,000 and 0.5."""
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


def _remedy(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """How the same thing is written, where that can be told."""
    message, given, place = WORDS[detail["type"]], detail["input"], detail["loc"]
    scalar = not isinstance(given, Mapping | list | tuple)
    if message == WHOLE and isinstance(given, str):
        return _whole(given)
    if message == TEXT and scalar:
        return f"Write it in quotes: {json.dumps(str(given))}"
    if message == LIST and scalar:
        return f"Write it in brackets: [{shorten(given)}]"
    if message == GROUP:
        return _group(_at(model, place), given)
    if detail["type"] == "string_pattern_mismatch":
        *parents, name = (part for part in place if isinstance(part, str))
        return str(_fields(_at(model, tuple(parents)))[name].description or "").rstrip(".")
    return ""


def _group(model: Any, given: object) -> str:
    known = _fields(model)
    named = "name" in known or any(_tags(model))
    if named and isinstance(given, str) and given:
        return f"Write {{name: {shorten(given)}}}"
    return f"Known: {', '.join(known)}" if known else ""


def _whole(given: str) -> str:
    """YAML takes 1e3 for text."""
    try:
        number = float(given)
    except ValueError:
        return ""
    return f"Write {number:.0f}" if number.is_integer() and abs(number) < 1e15 else ""


def _meant(name: str, model: type[BaseModel], path: tuple[Any, ...]) -> str:
    """What somebody meant by an unknown field: one beside it that is called alike, or one of that name further in."""
    beside = _fields(_at(model, path))
    close = difflib.get_close_matches(name, beside, n=1)
    further = [f"{key}.{name}" for key, one in beside.items() if name in _fields(_at_type(one.annotation))]
    if close or further:
        return f"Did you mean {(close or further)[0]}?"
    return f"Known: {', '.join(beside)}" if beside else "Remove it"


def _fields(model: Any) -> Mapping[str, Any]:
    return getattr(model, "model_fields", {})


def _at(model: Any, path: tuple[Any, ...]) -> Any:
    """The model that stands at `path`; None where none does."""
    current = model
    for part in path:
        field = _fields(current).get(part)
        current = _at_type(field.annotation) if field is not None else _tagged(current, part)
    return current


def _at_type(annotation: Any) -> Any:
    """The model of `Model | None`; anything else stays what it is."""
    models = [member for member in typing.get_args(annotation) if hasattr(member, "model_fields")]
    return models[0] if len(models) == 1 and typing.get_origin(annotation) is not dict else annotation


def _tagged(union: Any, tag: object) -> Any:
    """The member of a discriminated union that pydantic means by `tag` in a path, or a mapping's value; else None."""
    if typing.get_origin(union) is dict:
        return typing.get_args(union)[1]
    for member in typing.get_args(union):
        if any(field.default == tag for field in _fields(member).values()):
            return member
    return None


def _tags(union: Any) -> Iterator[str]:
    """The names of the members of a discriminated union."""
    for member in typing.get_args(union):
        if "name" in _fields(member):
            yield str(member.model_fields["name"].default)
