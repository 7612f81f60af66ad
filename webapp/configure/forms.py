"""The new-job form, made of the catalog and the contract: what was typed becomes a spec, and a spec what is typed."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel

from webapp.configure.fields import OFF, Field, fields_of
from workers.contract import catalog
from workers.contract.catalog import FOLDERS, Entry, Kind
from workers.contract.data import DatasetInfo
from workers.contract.document import VERSION
from workers.contract.keeping import Checkpoint, Export, Resume
from workers.contract.kinds import JobKind, Predict
from workers.contract.library import FILE
from workers.contract.optimizers import OPTIMIZERS
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.schedule import OWN
from workers.contract.spec import JobSpec, Training

Typed = Mapping[str, str]
"""What stands in each field, by the field's name. Fields of choices that are not taken are there too."""

LENGTHS: Final = ("epochs", "steps")
PREFERRED: dict[Kind, str] = {"dataset": "digits", "model": "mlp", "strategy": "mirrored"}
EXPORTS: Final[tuple[str, ...]] = get_args(Export)
KINDS: Final[tuple[str, ...]] = get_args(JobKind)
USES: Final = tuple(kind for kind in KINDS if kind != "train")
"""Kinds of job that take no steps."""
HEEDED = ("global_batch", "validation_split", "seed", "mixed_precision")
"""Training settings that also matter where no steps are taken."""
OPTIMIZER = "training.optimizer"
NOT_IN_FORM = ("initial_model",)
"""Training settings for runs by hand: a path on a training host, which no browser can choose."""
FACTS = "facts"
FILES = (FILE, FACTS)
"""Options of plugins that open a file: the choice itself says which, and the library what is in it."""
DATA = ("global_batch", "validation_split", "seed", "shuffle")
RATE = ("learning_rate_scaling", "warmup_steps", "schedule.kind")
SCHEDULES: Final = {kind: tuple(f"schedule.{name}" for name in names) for kind, names in OWN.items()}
ADVANCED: Final = {
    "Stopping": ("early_stopping", "stop_on_nan"),
    "Loss": ("label_smoothing", "class_weights"),
    "Gradients": ("aggregation", "clip"),
    "Reading data": ("sharding", "deterministic"),
    "Speed": ("steps_per_call", "mixed_precision", "jit"),
}
"""The settings that are folded away, under their headings."""
TITLE = "title"


@functools.cache
def offered(kind: Kind) -> dict[str, Entry]:
    """The plugins that can be chosen as they are, by name: not those that open a file, which the library offers."""
    return {name: entry for name, entry in catalog.entries(kind).items() if FILE not in entry.options.model_fields}


@functools.cache
def option_fields(kind: Kind, name: str) -> tuple[Field, ...]:
    """The fields of one plugin's options."""
    return _fields(catalog.entries(kind)[name].options, path=f"{kind}.options", name=f"{kind}.{name}", skip=FILES)


@functools.cache
def optimizer_fields(name: str) -> tuple[Field, ...]:
    """The fields of one optimizer."""
    return _fields(OPTIMIZERS[name], path=OPTIMIZER, name=f"optimizer.{name}", skip=("name",))


@functools.cache
def training_fields() -> dict[str, Field]:
    """The fields of the training settings, but for the optimizer's, by key (`epochs`, `clip.norm`)."""
    fields = _fields(Training, path="training", name="training", skip=("optimizer", *NOT_IN_FORM))
    return {field.path.removeprefix("training."): field for field in fields}


@functools.cache
def checkpoint_fields() -> tuple[Field, ...]:
    """The fields of when checkpoints are written and which stay."""
    return _fields(Checkpoint, path="checkpoint", name="checkpoint")


@functools.cache
def resume_fields() -> tuple[Field, ...]:
    """The fields that say what the job goes on from; empty for one that begins anew."""
    return _fields(Resume, path="resume", name="resume")


@functools.cache
def predict_fields() -> tuple[Field, ...]:
    """The fields of what to predict."""
    return _fields(Predict, path="predict", name="predict")


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
    yield from checkpoint_fields()
    yield from resume_fields()
    yield from predict_fields()


def blank() -> dict[str, str]:
    """What stands in the form before anybody typed: every default, and ten epochs."""
    typed = {field.name: field.default for field in all_fields()}
    for kind in FOLDERS:
        known = offered(kind)
        typed[f"{kind}.name"] = PREFERRED[kind] if PREFERRED[kind] in known else next(iter(known), "")
    typed |= {"kind": "train", "name": "", "tags": ""}
    typed |= {"training.length": "epochs", "training.epochs": "10", "training.steps": "1000"}
    typed[f"{OPTIMIZER}.name"] = "rmsprop"
    exported = JobSpec.model_fields["export"].default
    return typed | {f"export.{name}": "on" if name in exported else OFF for name in EXPORTS}


def typed_from_post(data: Mapping[str, str]) -> dict[str, str]:
    """Everything that was sent, kept as it was typed; a box that was not sent was not ticked."""
    typed = {key: value[:100_000] for key, value in data.items()}
    boxes = {field.name for field in all_fields() if field.widget == "checkbox"} | {f"export.{one}" for one in EXPORTS}
    return typed | {name: "on" if data.get(name) == "on" else "off" for name in boxes}


def spec_from_form(data: Typed) -> dict[str, Any]:
    """The spec that was typed, as plain JSON types and not yet checked; `workers.contract.spec.parse` does that."""
    choices = {kind: choice(kind, data) for kind in FOLDERS}
    spec: dict[str, Any] = {"version": VERSION, "name": data.get("name", "").strip()}
    spec["kind"] = kind = data.get("kind") or "train"
    spec |= {kind: choices[kind] for kind in ("dataset", "model", "strategy")}
    spec["training"] = _training(data)
    spec |= _keeping(data)
    if kind in USES:
        _leave_out_training(spec, data)
    tags = data.get("tags", "").replace(",", " ").split()
    if tags:
        spec["tags"] = tags
    spec["name"] = spec["name"] or suggest_name(spec, data)
    return spec


def _leave_out_training(spec: dict[str, Any], data: Typed) -> None:
    """What a job that takes no steps has no use for."""
    spec["training"] = {key: value for key, value in spec["training"].items() if key in HEEDED}
    spec.pop("checkpoint", None)
    if spec["kind"] != "export":
        spec.pop("export")
    if spec["kind"] == "predict":
        spec["predict"] = _read(predict_fields(), data, "predict")


def form_from_spec(spec: Mapping[str, Any]) -> dict[str, str]:
    """What is typed to get `spec` (plain JSON types, possibly faulty); everything else has its default."""
    typed = blank()
    typed["name"] = str(spec.get("name") or "")
    typed["kind"] = str(spec.get("kind") or "train")
    typed["tags"] = ", ".join(str(tag) for tag in spec.get("tags") or ())
    for kind in FOLDERS:
        chosen = mapping(spec.get(kind))
        name, options = str(chosen.get("name") or ""), mapping(chosen.get("options"))
        typed[f"{kind}.name"] = f"{name}={options[FILE]}" if options.get(FILE) else name
        typed[f"{kind}.{FACTS}"] = json.dumps(options.get(FACTS)) if options.get(FACTS) else ""
        fields = option_fields(kind, name) if name in catalog.entries(kind) else ()
        typed |= _write(fields, options, f"{kind}.options")
    typed |= _write(checkpoint_fields(), mapping(spec.get("checkpoint")), "checkpoint")
    typed |= _write(resume_fields(), mapping(spec.get("resume")), "resume")
    typed |= _write(predict_fields(), mapping(spec.get("predict")), "predict")
    if isinstance(spec.get("export"), list | tuple):
        typed |= {f"export.{name}": "on" if name in spec["export"] else OFF for name in EXPORTS}
    training = mapping(spec.get("training"))
    typed |= _write(training_fields().values(), training, "training")
    typed["training.length"] = "steps" if training.get("steps") is not None else "epochs"
    optimizer = mapping(training.get("optimizer"))
    name = typed[f"{OPTIMIZER}.name"] = str(optimizer.get("name") or "rmsprop")
    return typed | _write(optimizer_fields(name) if name in OPTIMIZERS else (), optimizer, OPTIMIZER)


def suggest_name(spec: Mapping[str, Any], data: Typed | None = None) -> str:
    """`mlp on digits, mirrored x2`; a file is called as the library calls it."""
    titles = {kind: (data or {}).get(f"{kind}.{TITLE}") for kind in FOLDERS}
    dataset, model, strategy = (
        titles[kind] or str(mapping(spec.get(kind)).get("name", "")) for kind in ("dataset", "model", "strategy")
    )
    strategy = str(mapping(spec.get("strategy")).get("name", ""))
    times = _replicas(strategy, mapping(mapping(spec.get("strategy")).get("options")))
    use = f"{spec.get('kind')} " if spec.get("kind") in USES else ""
    return f"{use}{model} on {dataset}, {strategy.replace('_', ' ')}{f' x{times}' if times > 1 else ''}"[:120]


def dataset_info(data: Typed) -> DatasetInfo | None:
    """What the chosen dataset says of itself; None while its name or options are faulty."""
    chosen = choice("dataset", data)
    entry = catalog.entries("dataset").get(chosen["name"])
    if entry is None:
        return None
    try:
        info: DatasetInfo = entry.module.describe(entry.parse(chosen["options"]))
    except SpecInvalid:
        return None
    return info


def field_at(path: str, data: Typed) -> str | None:
    """Name of the field that a problem's path means under the choices made; None when no field is meant.

    A path may go deeper than its field (`model.options.units.1`) or stop at a choice (`strategy.options`).
    """
    length = data.get("training.length", "epochs")
    names = {"name": "name", "tags": "tags", "export": "export", "checkpoint": "checkpoint.every_steps"}
    further = (*checkpoint_fields(), *resume_fields(), *predict_fields())
    names |= {"resume": "resume.job", "kind": "kind", "predict": "predict.split"}
    names |= {field.path: field.name for field in further}
    names |= {"training": f"training.{length}", OPTIMIZER: f"{OPTIMIZER}.name"}
    for kind in FOLDERS:
        chosen = plugin_of(data.get(f"{kind}.name", ""))
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
    # A path on a host, in a spec for runs by hand; the form knows files of the library only.
    hidden = problem.path in {f"{kind}.options.{FILE}" for kind in FOLDERS}
    return known and not hidden and field_at(problem.path, data) is not None


def plugin_of(value: str) -> str:
    """The plugin that a choice means: `mlp`, or `keras_file` of `keras_file=library:3@...`."""
    return value.partition("=")[0]


def choice(kind: Kind, data: Typed) -> dict[str, Any]:
    """Name and options of the plugin that is typed, not yet checked."""
    name, _, file = data.get(f"{kind}.name", "").partition("=")
    fields = option_fields(kind, name) if name in catalog.entries(kind) else ()
    options: dict[str, Any] = {FILE: file, FACTS: loaded(data.get(f"{kind}.{FACTS}", ""))} if file else {}
    given = {key: value for key, value in options.items() if value is not None}
    return {"name": name, "options": given | _read(fields, data, f"{kind}.options")}


def loaded(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def _training(data: Typed) -> dict[str, Any]:
    fields = training_fields()
    length = data.get("training.length", "epochs")
    length = length if length in LENGTHS else "epochs"
    training = _read((fields[length],), data, "training")
    kind = data.get("training.schedule.kind", "")
    left_out = {*LENGTHS, *(key for one, keys in SCHEDULES.items() if one != kind for key in keys)}
    rest = _read((field for key, field in fields.items() if key not in left_out), data, "training")
    name = data.get(f"{OPTIMIZER}.name", "") or "rmsprop"
    optimizer = {"name": name, **(_read(optimizer_fields(name), data, OPTIMIZER) if name in OPTIMIZERS else {})}
    return training | {"global_batch": rest.pop("global_batch", None), "optimizer": optimizer} | rest


def _keeping(data: Typed) -> dict[str, Any]:
    """Checkpoints as soon as one of their fields is not as it was, what to go on from, and the formats ticked."""
    kept = _read(checkpoint_fields(), data, "checkpoint")
    usual = _read(checkpoint_fields(), {}, "checkpoint")
    resume = _read(resume_fields(), data, "resume")
    exported = [name for name in EXPORTS if data.get(f"export.{name}") == "on"]
    asked = {"checkpoint": kept if kept != usual else None, "resume": resume}
    return {key: value for key, value in asked.items() if value} | {"export": exported}


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
        group = functools.reduce(lambda group, name: mapping(group.get(name)), groups, values)
        if key in group:
            written[field.name] = field.write(group[key])
    return written


def mapping(value: Any) -> Mapping[str, Any]:
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
