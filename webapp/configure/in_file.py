"""What the library knows of the chosen files, and what of it stands in the form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from webapp.configure.forms import FACTS, Typed, loaded, mapping, plugin_of
from workers.contract.catalog import FOLDERS

IN_FILE = ("target", "features")
"""Options of datasets that name something in the file."""


def names_in_file(data: Typed) -> dict[str, list[str]]:
    """By the name of a field that names a column, array or feature of the chosen file: those that there are."""
    facts = mapping(loaded(data.get(f"dataset.{FACTS}", "")))
    names = [str(one["name"]) for key in ("columns", "features") for one in facts.get(key) or ()]
    plugin = plugin_of(data.get("dataset.name", ""))
    return {f"dataset.{plugin}.{key}": names for key in IN_FILE if names}


def with_facts(data: Typed, completed: Mapping[str, Any]) -> dict[str, str]:
    """What is typed, with the facts of the chosen files out of a document that the library has completed."""
    filled = dict(data)
    for kind in FOLDERS:
        options = mapping(mapping(completed.get(kind)).get("options"))
        filled[f"{kind}.{FACTS}"] = json.dumps(options[FACTS]) if options.get(FACTS) else ""
        target = f"{kind}.{plugin_of(data.get(f'{kind}.name', ''))}.target"
        if "target" in options and not filled.get(target):
            filled[target] = str(options["target"])
    return filled
