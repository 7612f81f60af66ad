"""The base of every typed value on the border, and of every plugin's options."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Unknown fields are refused, values are frozen, and NaN survives JSON as the string "NaN"."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings", protected_namespaces=())


class Options(Strict):
    """What a strategy, model or dataset lets people choose.

    Each field carries `title`, `description` and its bounds (`ge`, `le`, `Literal`), because the form, the command line
    and the documentation are made of nothing else. `json_schema_extra={"advanced": True}` folds a field away in the
    form, and `json_schema_extra={"unit": "samples"}` names its unit.
    """
