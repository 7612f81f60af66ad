"""Writes what is made of the code: docs/settings.md, docs/spec.md and the README's table (`make docs`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from webapp.env import ROOT, Env
from workers.contract import catalog, matrix
from workers.contract.gradients import Aggregation, Clip
from workers.contract.inventory import SelfTest
from workers.contract.keeping import Checkpoint, Resume
from workers.contract.kinds import Predict
from workers.contract.optimizers import OPTIMIZERS
from workers.contract.schedule import EarlyStopping, Schedule
from workers.contract.spec import JobSpec, Training
from workers.host.settings import HostSettings

DOCS = Path(__file__).resolve().parent
GOING_ON = """\
A job that goes on from a checkpoint may have another strategy, number of replicas, batch, length or learning rate;
model, dataset and optimizer must be the same. It goes on at the same number of samples seen: with steps of another
size, at the whole step below it. `training.steps` and `epochs` count from the start of the first job, so a job of 100
steps goes on from step 50 with 50 more. On one device the weights are bit-equal to those of a job that was not cut.
The checkpoint is read off the devices between two steps and written while training goes on, one at a time: a second one
waits for the first. With `best`, an evaluation that is better than ever is saved at once, besides the rhythm; the
training loss is compared only when a checkpoint is due. By hand: `--resume CHECKPOINT`, and `touch DIR/pause` or
`touch DIR/checkpoint-now` while it runs.

A folder `step-<N>` holds `state.npz`, plain arrays that `numpy.load` reads (`model/<path>` are the weights, whole,
whatever the strategy split), and `manifest.json` with step, samples seen, the spec, metrics and SHA-256 digests."""
KINDS = """\
`train` is the usual one. The others take no steps and need weights: a checkpoint (`resume`, by hand `--resume`), a
model file that brings its own, or by hand `training.initial_model`. Of `training` they heed `global_batch`
(examples at once), `validation_split`, `seed` and `mixed_precision`; length, optimizer and all else do not matter.
The model must be the checkpoint's; the dataset may be another one with examples of the same shape, classes and
task. They run under every strategy, and the checkpoint may be of any.

- `evaluate`: `val_` metrics of the examples that `validation_split` holds out (the same ones as in training) and
  `test_` metrics of the test examples, each example counted once. Where nothing is held out and the dataset has no
  test part, all its examples are the test. Metrics are told at step 0.
- `predict`: `predictions.parquet`, one row for each example of `predict.split`, in the data's order, however many
  replicas and workers share the work. Columns: `index` from 0; `class` and `probabilities` (classification),
  `value` or `values` (regression, reconstruction) or `tokens` (a language model's most likely next ones); and
  `target`.
- `export`: the formats of `export`."""
TABLE_BEGINS, TABLE_ENDS = "<!-- self-test: made by `make docs` -->", "<!-- self-test ends -->"
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
    """The job specification: its fields, training settings, optimizers, what is kept, and the menu."""
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
    for name, group in (
        ("aggregation", Aggregation),
        ("clip", Clip),
        ("schedule", Schedule),
        ("early_stopping", EarlyStopping),
    ):
        parts += [f"\n### {name}\n", f"{' '.join((group.__doc__ or '').split())}\n", *_options(group)]
    for name, optimizer in OPTIMIZERS.items():
        parts += [f"\n### optimizer: {name}\n", f"{(optimizer.__doc__ or '').strip()}\n", *_options(optimizer)]
    beside = (_option(*each) for each in JobSpec.model_fields.items() if each[1].description)
    parts += ["\n## Beside training\n", *_table(("field", "default", "meaning"), beside)]
    for section, kept in (("checkpoint", Checkpoint), ("resume", Resume), ("predict", Predict)):
        parts += [f"\n### {section}\n", f"{' '.join((kept.__doc__ or '').split())}\n", *_options(kept)]
    parts += ["", GOING_ON, "\n### kind\n", KINDS]
    for kind in catalog.FOLDERS:
        for entry in catalog.entries(kind).values():
            parts += [f"\n## {kind}: {entry.name}\n", f"**{entry.title}.** {entry.summary}\n"]
            parts += _options(entry.options)
    return "\n".join(parts) + "\n"


def readme() -> str:
    """The README with the table of the self-test that is stored in docs/selftest.json."""
    before, rest = (ROOT / "README.md").read_text().split(TABLE_BEGINS)
    after = rest.partition(TABLE_ENDS)[2]
    found = SelfTest.model_validate_json((DOCS / "selftest.json").read_bytes())
    versions = f"Found by a real run with {found.key.rpartition(', ')[0]}, on {found.key.rpartition(', ')[2].upper()}."
    return f"{before}{TABLE_BEGINS}\n{versions}\n\n{matrix.markdown(found)}\n{TABLE_ENDS}{after}"


PAGES = {"settings.md": settings_page, "spec.md": spec_page, "../README.md": readme}


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
        plain = value.model_dump()
        words = ", ".join(f"{name}: {one}" for name, one in plain.items())
        return f"`{getattr(value, 'name', None) or plain.get('method') or words}`"
    if field.default_factory is not None:
        return "of the machine"
    if isinstance(value, tuple) and value and all(isinstance(each, str) for each in value):
        value = f"[{', '.join(value)}]"
    text = str(value).replace(str(ROOT), ".").replace(str(Path.home()), "~")
    return f"`{text}`" if text not in {"", "None"} else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


if __name__ == "__main__":
    for page, make in PAGES.items():
        (DOCS / page).write_text(make())
