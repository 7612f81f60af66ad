"""Reads a YAML or JSON text into plain types, and refuses what would cost minutes or the memory to read."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import yaml

from workers.contract.problems import Problem, SpecInvalid

VERSION: Final = "lockstep/v1"
MAX_LENGTH = 256 * 1024
MAX_DEPTH = 32
ALONE = "Send the spec alone"

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Plain types only; a key that stands twice in one mapping is a fault, not a choice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is no single word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", key.start_mark)
            seen.add(str(key.value))
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def read(text: str | bytes) -> dict[str, Any]:
    """The document as dictionaries, lists and scalars.

    Raises SpecInvalid, with the line where there is one, for what is too long, nested too deeply, has aliases (which
    may multiply without end), is not YAML, or is no mapping.
    """
    if len(text) > MAX_LENGTH:
        raise SpecInvalid([Problem("", f"is longer than {MAX_LENGTH} characters", None, ALONE)])
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise SpecInvalid([Problem("", "is not UTF-8 text", None, "Save the file as UTF-8")]) from None
    try:
        fault = _fault(text)
        data = None if fault else yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        fault = _invalid(error, text)
    except ValueError as error:
        fault = Problem("", f"has a value that cannot be read: {error}", None, "Write it as a plain number or text")
    if fault is not None:
        raise SpecInvalid([fault])
    if not isinstance(data, dict):
        raise SpecInvalid([Problem("", "must be a mapping of fields", data, f"Begin with `version: {VERSION}`")])
    return data


def _fault(text: str) -> Problem | None:
    depth = 0
    for event in yaml.parse(text, Loader=_Base):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            where = f" at line {event.start_mark.line + 1}" if event.start_mark else ""
            return Problem("", f"has an alias{where}", f"*{event.anchor}", "Write the value out")
        if depth > MAX_DEPTH:
            return Problem("", f"is nested more than {MAX_DEPTH} deep", None, ALONE)
    return None


def _invalid(error: yaml.YAMLError, text: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    if mark is not None and mark.line >= len(text.splitlines()):
        mark = getattr(error, "context_mark", None) or mark  # what was never closed, not the end of the text
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    if mark is not None and "\t" in text.splitlines()[mark.line][: mark.column + 1]:
        return Problem("", f"is not valid YAML{where}: it is indented by a tab", None, "Indent by spaces")
    return Problem("", f"is not valid YAML{where}: {getattr(error, 'problem', None) or error}", None, "Mend that line")
