"""The base of every typed value on the border, and of every plugin's options."""

from __future__ import annotations

import typing
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator


class Strict(BaseModel):
    """Unknown fields are refused, values are frozen, and NaN survives JSON as the string "NaN"."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings", protected_namespaces=())


class Chosen(Strict):
    """What people write. YAML reads `yes` and `on` as true, which Python counts as 1: no number of epochs."""

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and {int, float} & {annotation, *typing.get_args(annotation)}:
            raise ValueError("must be a number, not true or false")
        return value


class Options(Chosen):
    """What a strategy, model or dataset lets people choose.

    Each field carries `title`, `description` and its bounds (`ge`, `le`, `Literal`), because the form, the command line
    and the documentation are made of nothing else. `json_schema_extra={"advanced": True}` folds a field away in the
    form, and `json_schema_extra={"unit": "samples"}` names its unit.
    """
