"""A form field made of one property of a JSON schema, and what was typed into it as a value and back."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Literal

Widget = Literal["number", "text", "select", "checkbox", "json"]
SCALARS = {"integer", "number", "string"}
NO_BOUND = 10_000
"""What is allowed beyond this is only there to catch slips."""
OFF = "off"
"""How an unticked box is told from one that the browser never sent."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One thing to type. `path` is where it stands in the spec, `name` what the browser sends it as."""

    name: str
    path: str
    title: str
    description: str
    unit: str
    advanced: bool
    schema: Mapping[str, Any] = dataclasses.field(repr=False)

    @property
    def id(self) -> str:
        """Of the element, for labels and for links from the list of errors."""
        return "field-" + self.name.replace(".", "-")

    @property
    def types(self) -> frozenset[str]:
        """JSON types it takes; a fixed text such as `auto` counts as `const`."""
        return frozenset(_type(variant) for variant in _variants(self.schema))

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values of a closed list, else nothing."""
        return tuple(value for variant in _variants(self.schema) for value in variant.get("enum", ()))

    @property
    def optional(self) -> bool:
        """Whether nothing at all may stand there."""
        return "null" in self.types

    @property
    def widget(self) -> Widget:
        """How it is drawn; what the schema says beyond these is typed as JSON."""
        types = self.types - {"null", "const"}
        if self.choices:
            return "select"
        if types == {"boolean"}:
            return "checkbox"
        if self.pairs or types <= {"string"} or self._names:
            return "text"
        if types <= {"integer", "number", "array"} and self._items() in SCALARS:
            return "number"
        return "json"

    @property
    def pairs(self) -> bool:
        """Whether it takes numbers by key, typed as `0: 1.0, 1: 2.5`."""
        values = (each.get("additionalProperties") for each in _variants(self.schema) if _type(each) == "object")
        return any(isinstance(each, Mapping) and _type(each) in {"integer", "number"} for each in values)

    @property
    def suggestions(self) -> tuple[str, ...]:
        """Words that it takes besides numbers."""
        return tuple(str(variant["const"]) for variant in _variants(self.schema) if "const" in variant)

    @property
    def decimal(self) -> bool:
        """Whether a phone should offer the decimal point (and the comma of a list)."""
        return not self.types <= {"integer", "null"}

    @property
    def default(self) -> str:
        """What stands there when nothing was typed."""
        return self.write(self.schema.get("default"))

    @property
    def bounds(self) -> str:
        """What is accepted, for the hint: `1 to 16`, empty without bounds."""
        variant = next((one for one in _variants(self.schema) if _type(one) in {"integer", "number"}), {})
        low = variant.get("minimum", variant.get("exclusiveMinimum"))
        high = variant.get("maximum", variant.get("exclusiveMaximum"))
        if low is None or high is None:
            return ""
        below = "below " if "exclusiveMaximum" in variant else ""
        return f"{low:,} to {below}{high:,}" if high <= NO_BOUND else ""

    def read(self, text: str) -> Any:
        """The value that was typed, None for nothing. What cannot be read stays text: the contract names the fault."""
        text = text.strip()
        if self.widget == "checkbox":
            return text not in ("", OFF)
        if self.choices:
            return next((value for value in self.choices if str(value) == text), text or None)
        if self.pairs:
            return _pairs(text) or text or None
        if self.widget == "json":
            return _json(text)
        if "array" in self.types and (self.types <= {"array", "null"} or "," in text or text.startswith("[")):
            return _names(text) if self._names else [_scalar(part, self._item_types()) for part in _parts(text)]
        return _scalar(text, self.types) if text else None

    def write(self, value: Any) -> str:
        """`value` as a person types it; reading it gives the value again."""
        if value is None:
            return ""
        if self.widget == "checkbox":
            return "on" if value is True else OFF
        if isinstance(value, str):
            return value
        if self.pairs and isinstance(value, dict):
            return ", ".join(f"{key}: {_number(number)}" for key, number in value.items())
        if self.widget != "json" and isinstance(value, list | tuple):
            text = ", ".join(_quoted(str(item)) if self._names else _number(item) for item in value)
            return f"[{text}]" if "integer" in self.types and len(value) < 2 else text
        return json.dumps(value) if self.widget == "json" else _number(value)

    @property
    def _names(self) -> bool:
        """Whether it takes a list of names, which may have spaces in them."""
        return self.types <= {"array", "null"} and self._item_types() == {"string"}

    def _item_types(self) -> frozenset[str]:
        arrays = [one for one in _variants(self.schema) if one.get("type") == "array"]
        return frozenset(_type(item) for one in arrays for item in _variants(one.get("items", {})))

    def _items(self) -> str:
        return min(self._item_types(), default="integer")


def fields_of(schema: Mapping[str, Any], *, path: str, name: str, skip: tuple[str, ...] = ()) -> tuple[Field, ...]:
    """A field for each property, in the order of the model. `path` and `name` go before each property's own.

    A property that is a model itself becomes the fields of that model, its own key before theirs.
    """
    definitions = schema.get("$defs", {})
    found: list[Field] = []
    for key, one in schema.get("properties", {}).items():
        if key in skip:
            continue
        nested = _model(one, definitions)
        if nested is not None:
            found += fields_of({**nested, "$defs": definitions}, path=f"{path}.{key}", name=f"{name}.{key}")
            continue
        field = Field(
            name=f"{name}.{key}",
            path=f"{path}.{key}",
            title=one.get("title", key),
            description=one.get("description", ""),
            unit=one.get("unit", ""),
            advanced=bool(one.get("advanced")),
            schema=one,
        )
        found.append(field)
    return tuple(found)


def _model(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of the model that a property holds, if it holds one."""
    names = [str(variant["$ref"]).rpartition("/")[2] for variant in _variants(schema) if "$ref" in variant]
    found: Mapping[str, Any] | None = definitions.get(names[0]) if len(names) == 1 else None
    return found if found is not None and "properties" in found else None


def _variants(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(schema.get("anyOf") or [schema])


def _type(variant: Mapping[str, Any]) -> str:
    return "const" if "const" in variant else str(variant.get("type", "object"))


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[,\s]+", text.strip().removeprefix("[").removesuffix("]").strip()) if part]


def _scalar(text: str, types: frozenset[str]) -> Any:
    if types & {"integer", "number"}:
        try:
            return int(text)
        except ValueError:
            pass
        try:
            number = float(text)
        except ValueError:
            return text
        # 1e5 steps is what people type; 1.5 epochs stays a float and is refused with its value.
        return int(number) if "number" not in types and number.is_integer() else number
    return text


def _pairs(text: str) -> dict[str, Any] | None:
    """`0: 1.0, 1: 2.5` as a mapping; None for what is not that, or names a key twice."""
    parts = [part.partition(":") for part in text.strip("{} ").split(",")]
    found = {key.strip(): _scalar(value.strip(), frozenset({"number"})) for key, _, value in parts}
    whole = all(colon and key.strip() and value.strip() for key, colon, value in parts)
    return found if whole and len(found) == len(parts) else None


def _names(text: str) -> list[str]:
    line = " ".join(text.splitlines())
    line = line[1:-1] if line.startswith("[") and line.endswith("]") else line
    parts = next(csv.reader([line], skipinitialspace=True), [])
    return [part.strip() for part in parts if part.strip()]


def _quoted(name: str) -> str:
    """A name as it stands in a list by comma."""
    return '"' + name.replace('"', '""') + '"' if "," in name or name.startswith(('"', "[")) else name


def _json(text: str) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _number(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.1f}"
    return str(value)
