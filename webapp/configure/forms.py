"""The new-job form, made of the catalog and the contract: what was typed becomes a spec, and a spec what is typed."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel

from webapp.configure.fields import Field, fields_of
from workers.contract import catalog
from workers.contract.catalog import FOLDERS, Kind
from workers.contract.data import DatasetInfo
from workers.contract.document import VERSION
from workers.contract.optimizers import OPTIMIZERS
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import Training

Typed = Mapping[str, str]
"""What stands in each field, by the field's name. Fields of choices that are not taken are there too."""

LENGTHS: Final = ("epochs", "steps")
PREFERRED: dict[Kind, str] = {"dataset": "digits", "model": "mlp", "strategy": "mirrored"}
OPTIMIZER = "training.optimizer"
NOT_IN_FORM = ("initial_model",)
"""Training settings for runs by hand: a path on a training host, which no browser can choose."""
DATA = ("global_batch", "validation_split", "seed", "shuffle")
RATE = ("learning_rate_scaling", "warmup_steps")


@functools.cache
def option_fields(kind: Kind, name: str) -> tuple[Field, ...]:
    """The fields of one plugin's options."""
    return _fields(catalog.entries(kind)[name].options, path=f"{kind}.options", name=f"{kind}.{name}")


@functools.cache
def optimizer_fields(name: str) -> tuple[Field, ...]:
    """The fields of one optimizer."""
    return _fields(OPTIMIZERS[name], path=OPTIMIZER, name=f"optimizer.{name}", skip=("name",))


@functools.cache
def training_fields() -> dict[str, Field]:
    """The fields of the training settings, but for the optimizer's, by key (`epochs`, `clip.norm`)."""
    fields = _fields(Training, path="training", name="training", skip=("optimizer", *NOT_IN_FORM))
    return {field.path.removeprefix("training."): field for field in fields}


def _fields(model: type[BaseModel], *, path: str, name: str, skip: tuple[str, ...] = ()) -> tuple[Field, ...]:
    return fields_of(model.model_json_schema(), path=path, name=name, skip=skip)


def all_fields() -> Iterable[Field]:
    """Every field of the page that the catalog or the contract declares."""
    for kind in FOLDERS:
        for name in catalog.entries(kind):
            yield from option_fields(kind, name)
    for name in OPTIMIZERS:
        yield from optimizer_fields(name)
    yield from training_fields().values()


def blank() -> dict[str, str]:
    """What stands in the form before anybody typed: every default, and ten epochs."""
    typed = {field.name: field.default for field in all_fields()}
    for kind in FOLDERS:
        known = catalog.entries(kind)
        typed[f"{kind}.name"] = PREFERRED[kind] if PREFERRED[kind] in known else next(iter(known), "")
    typed |= {"name": "", "tags": "", "training.length": "epochs", "training.epochs": "10", "training.steps": "1000"}
    typed[f"{OPTIMIZER}.name"] = "rmsprop"
    return typed


def typed_from_post(data: Mapping[str, str]) -> dict[str, str]:
    """Everything that was sent, kept as it was typed; a box that was not sent was not ticked."""
    typed = {key: value[:100_000] for key, value in data.items()}
    boxes = {field.name for field in all_fields() if field.widget == "checkbox"}
    return typed | {name: "on" if data.get(name) == "on" else "off" for name in boxes}


def spec_from_form(data: Typed) -> dict[str, Any]:
    """The spec that was typed, as plain JSON types and not yet checked; `workers.contract.spec.parse` does that."""
    choices = {kind: _choice(kind, data) for kind in FOLDERS}
    spec: dict[str, Any] = {"version": VERSION, "name": data.get("name", "").strip(), "kind": "train"}
    spec |= {kind: choices[kind] for kind in ("dataset", "model", "strategy")}
    spec["training"] = _training(data)
    tags = data.get("tags", "").replace(",", " ").split()
    if tags:
        spec["tags"] = tags
    spec["name"] = spec["name"] or suggest_name(spec)
    return spec


def form_from_spec(spec: Mapping[str, Any]) -> dict[str, str]:
    """What is typed to get `spec` (plain JSON types, possibly faulty); everything else has its default."""
    typed = blank()
    typed["name"] = str(spec.get("name") or "")
    typed["tags"] = ", ".join(str(tag) for tag in spec.get("tags") or ())
    for kind in FOLDERS:
        choice = _mapping(spec.get(kind))
        name = typed[f"{kind}.name"] = str(choice.get("name") or "")
        fields = option_fields(kind, name) if name in catalog.entries(kind) else ()
        typed |= _write(fields, _mapping(choice.get("options")), f"{kind}.options")
    training = _mapping(spec.get("training"))
    typed |= _write(training_fields().values(), training, "training")
    typed["training.length"] = "steps" if training.get("steps") is not None else "epochs"
    optimizer = _mapping(training.get("optimizer"))
    name = typed[f"{OPTIMIZER}.name"] = str(optimizer.get("name") or "rmsprop")
    return typed | _write(optimizer_fields(name) if name in OPTIMIZERS else (), optimizer, OPTIMIZER)


def suggest_name(spec: Mapping[str, Any]) -> str:
    """`mlp on digits, mirrored x2`"""
    dataset, model, strategy = (
        str(_mapping(spec.get(kind)).get("name", "")) for kind in ("dataset", "model", "strategy")
    )
    times = _replicas(strategy, _mapping(_mapping(spec.get("strategy")).get("options")))
    return f"{model} on {dataset}, {strategy.replace('_', ' ')}{f' x{times}' if times > 1 else ''}"[:120]


def dataset_info(data: Typed) -> DatasetInfo | None:
    """What the chosen dataset says of itself; None while its name or options are faulty."""
    choice = _choice("dataset", data)
    entry = catalog.entries("dataset").get(choice["name"])
    if entry is None:
        return None
    try:
        info: DatasetInfo = entry.module.describe(entry.parse(choice["options"]))
    except SpecInvalid:
        return None
    return info


def field_at(path: str, data: Typed) -> str | None:
    """Name of the field that a problem's path means under the choices made; None when no field is meant.

    A path may go deeper than its field (`model.options.units.1`) or stop at a choice (`strategy.options`).
    """
    length = data.get("training.length", "epochs")
    names = {"name": "name", "tags": "tags", "training": f"training.{length}", OPTIMIZER: f"{OPTIMIZER}.name"}
    for kind in FOLDERS:
        chosen = data.get(f"{kind}.name", "")
        names |= dict.fromkeys((kind, f"{kind}.name", f"{kind}.options"), f"{kind}.name")
        if chosen in catalog.entries(kind):
            names |= {field.path: field.name for field in option_fields(kind, chosen)}
    for field in training_fields().values():
        names.setdefault(field.path.rpartition(".")[0], field.name)
        names[field.path] = field.name
    names |= {field.path: field.name for field in optimizer_fields(_optimizer(data))}
    names[f"{OPTIMIZER}.name"] = f"{OPTIMIZER}.name"
    parts = path.split(".")
    known = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((names[one] for one in known if one in names), None)


def has_field(problem: Problem, data: Typed) -> bool:
    """Whether the form can show the fault where it is; an unknown key has no field."""
    known = problem.path.removeprefix("training.") not in NOT_IN_FORM and problem.message != "is not a known field"
    return known and field_at(problem.path, data) is not None


def _choice(kind: Kind, data: Typed) -> dict[str, Any]:
    name = data.get(f"{kind}.name", "")
    fields = option_fields(kind, name) if name in catalog.entries(kind) else ()
    return {"name": name, "options": _read(fields, data, f"{kind}.options")}


def _training(data: Typed) -> dict[str, Any]:
    fields = training_fields()
    length = data.get("training.length", "epochs")
    length = length if length in LENGTHS else "epochs"
    training = _read((fields[length],), data, "training")
    rest = _read((field for key, field in fields.items() if key not in LENGTHS), data, "training")
    name = data.get(f"{OPTIMIZER}.name", "") or "rmsprop"
    optimizer = {"name": name, **(_read(optimizer_fields(name), data, OPTIMIZER) if name in OPTIMIZERS else {})}
    return training | {"global_batch": rest.pop("global_batch", None), "optimizer": optimizer} | rest


def _optimizer(data: Typed) -> str:
    name = data.get(f"{OPTIMIZER}.name", "")
    return name if name in OPTIMIZERS else "rmsprop"


def _read(fields: Iterable[Field], data: Typed, base: str) -> dict[str, Any]:
    """What was typed by its key below `base`; an empty field leaves its default to the contract."""
    values: dict[str, Any] = {}
    for field in fields:
        value = field.read(data.get(field.name, field.default))
        *groups, key = field.path.removeprefix(f"{base}.").split(".")
        if value is not None:
            functools.reduce(lambda group, name: group.setdefault(name, {}), groups, values)[key] = value
    return values


def _write(fields: Iterable[Field], values: Mapping[str, Any], base: str) -> dict[str, str]:
    written = {}
    for field in fields:
        *groups, key = field.path.removeprefix(f"{base}.").split(".")
        group = functools.reduce(lambda group, name: _mapping(group.get(name)), groups, values)
        if key in group:
            written[field.name] = field.write(group[key])
    return written


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _replicas(strategy: str, options: Mapping[str, Any]) -> int:
    entry = catalog.entries("strategy").get(strategy)
    if entry is None:
        return 0
    try:
        layout = entry.module.layout(entry.parse(dict(options)))
    except SpecInvalid:  # the name then goes without a number
        return 0
    replicas: int = layout.replicas
    return replicas
