"""Writes the reference pages that are made of the code: docs/settings.md and docs/spec.md (`make docs`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from webapp.env import ROOT, Env
from workers.contract import catalog
from workers.contract.gradients import Aggregation, Clip
from workers.contract.optimizers import OPTIMIZERS
from workers.contract.spec import Training
from workers.host.settings import HostSettings

DOCS = Path(__file__).resolve().parent
MADE = "<!-- Made by docs/generate.py; change the code and run `make docs`. -->"


def settings_page() -> str:
    """Every environment variable of web and host."""
    parts = [
        "# Settings\n",
        MADE,
        "\nEverything is set by environment variables; a `.env` file in the project's root serves as well, as do",
        "files under `/run/secrets`. A wrong value ends the start and names itself.\n",
        "## Web, control and ingest\n",
        *_table(("variable", "default", "meaning"), (_variable(*each) for each in Env.model_fields.items())),
        "\n## Training hosts\n",
        *_table(("variable", "default", "meaning"), (_variable(*each) for each in HostSettings.model_fields.items())),
    ]
    return "\n".join(parts) + "\n"


def spec_page() -> str:
    """The job specification: training settings, optimizers and the menu."""
    parts = [
        "# The job specification\n",
        MADE,
        "\n`lockstep/v1`, as YAML or JSON: the form's YAML tab, `manage.py submit` and `python -m workers.training`",
        "read the same document. Unknown fields are refused.\n",
        "```yaml",
        (ROOT / "docs" / "example.yaml").read_text().rstrip(),
        "```\n",
        "## training\n",
        *_options(Training),
    ]
    for name, group in (("aggregation", Aggregation), ("clip", Clip)):
        parts += [f"\n### {name}\n", f"{' '.join((group.__doc__ or '').split())}\n", *_options(group)]
    for name, optimizer in OPTIMIZERS.items():
        parts += [f"\n### optimizer: {name}\n", f"{(optimizer.__doc__ or '').strip()}\n", *_options(optimizer)]
    for kind in catalog.FOLDERS:
        for entry in catalog.entries(kind).values():
            parts += [f"\n## {kind}: {entry.name}\n", f"**{entry.title}.** {entry.summary}\n"]
            parts += _options(entry.options)
    return "\n".join(parts) + "\n"


PAGES = {"settings.md": settings_page, "spec.md": spec_page}


def _options(model: type[BaseModel]) -> list[str]:
    rows = [_option(name, field) for name, field in model.model_fields.items() if name != "name"]
    return _table(("field", "default", "meaning"), rows) if rows else ["No options."]


def _option(name: str, field: FieldInfo) -> tuple[str, str, str]:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    unit = f" In {extra['unit']}." if extra.get("unit") else ""
    meaning = field.description or f"{field.title}."
    return f"`{name}`", _default(field), f"{meaning}{unit}"


def _variable(name: str, field: FieldInfo) -> tuple[str, str, str]:
    alias = field.validation_alias if isinstance(field.validation_alias, str) else name
    return f"`{alias.upper()}`", _default(field), field.description or ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return f"`{getattr(value, 'name', None) or next(iter(value.model_dump().values()))}`"
    if field.default_factory is not None:
        return "of the machine"
    text = str(value).replace(str(ROOT), ".").replace(str(Path.home()), "~")
    return f"`{text}`" if text not in {"", "None"} else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


if __name__ == "__main__":
    for page, make in PAGES.items():
        (DOCS / page).write_text(make())
