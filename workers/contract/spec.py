"""The job specification, `lockstep/v1`: one document for form, YAML, API, command line and training host."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from workers.contract import catalog
from workers.contract.base import Options, Strict
from workers.contract.data import DatasetInfo
from workers.contract.document import VERSION, read
from workers.contract.gradients import Aggregation, Clip
from workers.contract.layout import Layout
from workers.contract.optimizers import OPTIMIZERS, Optimizer, RMSprop
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.validation import problems_of


class Choice(Strict):
    """A plugin by name, with its options."""

    name: str = Field(min_length=1, max_length=100)
    options: dict[str, Any] = Field(default_factory=dict)


class Training(Strict):
    """How to train, whatever is trained."""

    epochs: int | None = Field(None, ge=1, le=100_000, title="Epochs", description="Passes over the training data.")
    steps: int | None = Field(
        None, ge=1, le=1_000_000_000, title="Steps", description="Optimizer steps, instead of epochs."
    )
    global_batch: int = Field(
        128,
        ge=1,
        le=10_000_000,
        title="Global batch",
        description="Examples per step over all replicas; shared by workers that step each on their own.",
        json_schema_extra={"unit": "samples"},
    )
    optimizer: Optimizer = Field(default_factory=RMSprop, title="Optimizer")
    aggregation: Aggregation = Field(
        default_factory=Aggregation,
        title="Aggregation",
        description="How gradients are put together: `method` mean, sum or local (with `micro_batches`).",
    )
    clip: Clip | None = Field(
        None, title="Clip", description="Bounds the gradients: one of `value`, `norm` and `global_norm`."
    )
    learning_rate_scaling: Literal["none", "linear"] = Field(
        "none",
        title="Learning-rate scaling",
        description="Linear multiplies the learning rate by the number of replicas (Goyal et al., 2017).",
    )
    warmup_steps: int = Field(
        0,
        ge=0,
        title="Warm-up",
        description="Steps over which the learning rate rises from zero.",
        json_schema_extra={"unit": "steps"},
    )
    validation_split: float = Field(
        0.2, ge=0, lt=1, title="Validation split", description="Part of the training data that is held out."
    )
    shuffle: bool = Field(True, title="Shuffle", description="A new order each epoch, decided by the seed.")
    seed: int = Field(1, ge=0, le=2**31 - 1, title="Seed")
    initial_model: str | None = Field(
        None,
        min_length=1,
        max_length=4096,
        title="Initial model",
        description="A .keras file on the training host whose weights the job starts from; for runs by hand.",
    )
    steps_per_call: int | Literal["auto"] = Field(
        "auto",
        title="Steps per device call",
        description="More steps in one call cost less overhead; auto measures.",
        json_schema_extra={"advanced": True},
    )
    mixed_precision: Literal["none", "float16", "bfloat16"] = Field(
        "none",
        title="Mixed precision",
        description="Compute in 16 bits, keep the weights in 32.",
        json_schema_extra={"advanced": True},
    )
    jit: bool = Field(
        False,
        title="XLA",
        description="Compile the step with XLA. Not faster everywhere: measure.",
        json_schema_extra={"advanced": True},
    )
    stop_on_nan: bool = Field(
        False,
        title="Stop on NaN",
        description="End the job as failed when the loss is no longer finite.",
        json_schema_extra={"advanced": True},
    )

    @field_validator("steps_per_call")
    @classmethod
    def _at_least_one(cls, value: int | str) -> int | str:
        if isinstance(value, int) and not 1 <= value <= 10_000:
            raise ValueError("must be auto or between 1 and 10000")
        return value

    @model_validator(mode="after")
    def _one_length(self) -> Training:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps, not both and not neither")
        return self


class JobSpec(Strict):
    """One job, complete: the same document always means the same run."""

    version: Literal["lockstep/v1"] = VERSION
    name: str = Field(min_length=1, max_length=120, title="Name")
    kind: Literal["train"] = "train"
    dataset: Choice
    model: Choice
    strategy: Choice
    training: Training
    tags: tuple[Annotated[str, Field(pattern=r"^[\w.:-]{1,40}$")], ...] = Field((), max_length=20, title="Tags")

    def to_yaml(self) -> str:
        """The document as people read it; parsing it gives this spec again."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; unset alternatives (epochs or steps) are left out."""
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def dataset_info(self) -> DatasetInfo:
        """What the dataset plugin says of the data under these options."""
        entry = catalog.find("dataset", self.dataset.name)
        info: DatasetInfo = entry.module.describe(entry.parse(self.dataset.options))
        return info

    @property
    def layout(self) -> Layout:
        """The processes that the strategy plugin asks for under these options."""
        entry = catalog.find("strategy", self.strategy.name)
        layout: Layout = entry.module.layout(entry.parse(self.strategy.options))
        return layout

    def options_of(self, kind: catalog.Kind) -> Options:
        """The plugin's options as its own type."""
        choice: Choice = getattr(self, kind)
        return catalog.find(kind, choice.name).parse(choice.options)

    @property
    def micro_batches(self) -> int:
        """Global batches in one optimizer step."""
        return self.training.aggregation.micro_batches or 1

    @property
    def samples_per_step(self) -> int:
        """Examples that one optimizer step sees; a replica's share of the global batch where each steps on its own."""
        layout = self.layout
        return self.training.global_batch * self.micro_batches // (layout.replicas if layout.asynchronous else 1)

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps that the training data is enough for (the remainder is dropped)."""
        return self.dataset_info.training_samples(self.training.validation_split) // self.samples_per_step

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole job."""
        if self.training.steps is not None:
            return self.training.steps
        return (self.training.epochs or 0) * self.steps_per_epoch

    @property
    def peak_learning_rate(self) -> float:
        """The learning rate after scaling, once warm."""
        factor = self.layout.replicas if self.training.learning_rate_scaling == "linear" else 1
        return self.training.optimizer.learning_rate * factor

    @property
    def effective_learning_rate(self) -> float:
        """The peak learning rate per mean gradient: sum aggregation leaves out the division by the global batch."""
        factor = self.training.global_batch if self.training.aggregation.method == "sum" else 1
        return self.peak_learning_rate * factor


def parse(document: str | bytes | dict[str, Any]) -> JobSpec:
    """Read YAML, JSON or a plain dictionary and check everything that can be known without a host.

    Raises SpecInvalid with every problem found.
    """
    data = document if isinstance(document, dict) else read(document)
    try:
        spec = JobSpec.model_validate(data)
    except ValidationError as error:
        raise SpecInvalid(_spec_problems(error, data)) from None
    problems = check(spec)
    if problems:
        raise SpecInvalid(problems)
    return spec


def check(spec: JobSpec) -> list[Problem]:
    """What the fields' own types cannot see: unknown plugins, options, and choices that do not fit together."""
    problems = _plugin_problems(spec)
    return problems or _fit_problems(spec)


def _plugin_problems(spec: JobSpec) -> list[Problem]:
    problems: list[Problem] = []
    for kind in catalog.FOLDERS:
        choice: Choice = getattr(spec, kind)
        try:
            entry = catalog.find(kind, choice.name)
        except SpecInvalid as error:
            problems += error.problems
            continue
        try:
            entry.parse(choice.options)
        except SpecInvalid as error:
            problems += [problem.under(f"{kind}.options") for problem in error.problems]
    return problems


def _fit_problems(spec: JobSpec) -> list[Problem]:
    problems: list[Problem] = []
    strategy, model = catalog.find("strategy", spec.strategy.name), catalog.find("model", spec.model.name)
    if hasattr(strategy.module, "check"):
        found = strategy.module.check(spec.options_of("strategy"))
        problems += [problem.under("strategy.options") for problem in found]
    if hasattr(strategy.module, "check_training"):
        found = strategy.module.check_training(spec.options_of("strategy"), spec.training)
        problems += [problem.under("training") for problem in found]
    if hasattr(model.module, "check"):
        found = model.module.check(spec.options_of("model"), spec.dataset_info)
        problems += [problem.under("model") for problem in found]
    return problems + _jit_problems(spec) + _batch_problems(spec)


def _jit_problems(spec: JobSpec) -> list[Problem]:
    """XLA compiles a replica's step as one piece, and TensorFlow has no words with other replicas inside of it."""
    model = catalog.find("model", spec.model.name).module
    if not (spec.training.jit and spec.layout.replicas > 1 and hasattr(model, "synchronizes")):
        return []
    if not model.synchronizes(spec.options_of("model")):
        return []
    message = f"cannot compile batch normalization over {spec.layout.replicas} replicas"
    return [Problem("training.jit", message, True, "Turn jit or batch_norm off, or use one device")]


def _batch_problems(spec: JobSpec) -> list[Problem]:
    batch, replicas = spec.training.global_batch, spec.layout.replicas
    samples = spec.dataset_info.training_samples(spec.training.validation_split)
    path = "training.global_batch"
    if batch % replicas:
        below, above = batch // replicas * replicas, (batch // replicas + 1) * replicas
        nearest = f"{below} or {above}" if below else str(above)
        return [Problem(path, f"cannot be shared evenly by {replicas} replicas", batch, f"Nearest that can: {nearest}")]
    if batch > samples:
        return [Problem(path, f"is larger than the {samples} training samples", batch, f"Use at most {samples}")]
    if spec.samples_per_step > samples:
        message = f"make steps of {spec.samples_per_step} examples, and there are {samples} training samples"
        remedy = f"Use at most {samples // batch}, or a smaller global batch"
        return [Problem("training.aggregation.micro_batches", message, spec.micro_batches, remedy)]
    return []


def _spec_problems(error: ValidationError, data: dict[str, Any]) -> list[Problem]:
    given = data.get("version")
    if given is not None and given != VERSION:
        return [Problem("version", "is not a version that this Lockstep reads", given, f"Use {VERSION}")]
    return [_clean(problem) for problem in problems_of(error, JobSpec)]


def _clean(problem: Problem) -> Problem:
    """Pydantic puts the tag of a union into the path (`training.optimizer.adam.beta_1`); people did not write it."""
    parts = problem.path.split(".")
    if parts[:2] == ["training", "optimizer"] and len(parts) > 2 and parts[2] in OPTIMIZERS:
        del parts[2]
    if parts[:2] == ["training", "steps_per_call"]:
        del parts[2:]
    return Problem(".".join(parts), problem.message, problem.value, problem.remedy)


def to_json(spec: JobSpec) -> str:
    """The document as JSON, one line."""
    return json.dumps(spec.to_dict(), ensure_ascii=False)
