"""The job specification, `lockstep/v1`: one document for form, YAML, API, command line and training host."""

from __future__ import annotations

import contextlib
import json
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, field_validator, model_validator

from workers.contract import catalog
from workers.contract.base import Chosen, Options, Strict
from workers.contract.data import DatasetInfo, Task
from workers.contract.document import VERSION, read
from workers.contract.fitting import check, choice_problems
from workers.contract.gradients import Aggregation, Clip
from workers.contract.keeping import Checkpoint, Export, Resume
from workers.contract.kinds import JobKind, Predict
from workers.contract.layout import Layout
from workers.contract.optimizers import OPTIMIZERS, Optimizer, RMSprop
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.schedule import EarlyStopping, Schedule
from workers.contract.validation import problems_of


class Choice(Strict):
    """A plugin by name, with its options."""

    name: str = Field(min_length=1, max_length=100)
    options: dict[str, Any] = Field(default_factory=dict)


ClassWeight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Training(Chosen):
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
        le=1_000_000_000,
        title="Warm-up",
        description="Steps over which the learning rate rises from zero.",
        json_schema_extra={"unit": "steps"},
    )
    schedule: Schedule = Field(
        default_factory=Schedule,
        title="Schedule",
        description="How the learning rate falls after the warm-up: `kind` constant, step (with `every_steps` and "
        "`factor`) or cosine (with `final`).",
    )
    label_smoothing: float = Field(
        0.0,
        ge=0,
        lt=1,
        title="Label smoothing",
        description="Part of each target that is spread evenly over all classes while training.",
        json_schema_extra={"advanced": True},
    )
    class_weights: Literal["balanced"] | dict[Annotated[int, Field(ge=0)], ClassWeight] | None = Field(
        None,
        title="Class weights",
        description="Weight of each class in the training loss, such as 0: 1.0, 1: 2.5 (others weigh 1); or balanced. "
        "The sum is still divided by the global batch.",
        json_schema_extra={"advanced": True},
    )
    early_stopping: EarlyStopping | None = Field(
        None,
        title="Early stopping",
        description="Ends the job when `metric` has not become better by `min_delta` for `patience` epochs.",
    )
    validation_split: float = Field(
        0.2, ge=0, lt=1, title="Validation split", description="Part of the training data that is held out."
    )
    shuffle: bool = Field(True, title="Shuffle", description="A new order each epoch, decided by the seed.")
    seed: int = Field(1, ge=0, le=2**31 - 1, title="Seed")
    sharding: Literal["auto", "data", "file", "off"] = Field(
        "auto",
        title="Data sharding",
        description="Auto and data: one order of all data, each worker takes its share of every global batch. File: "
        "each worker reads files of its own. Off: each worker goes through all data in an order of its own.",
        json_schema_extra={"advanced": True},
    )
    deterministic: bool = Field(
        True,
        title="Deterministic order",
        description="Data that is read from disk comes in the order that the seed decides; off takes what is read "
        "first, which several files make faster.",
        json_schema_extra={"advanced": True},
    )
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

    @field_validator("steps_per_call", mode="wrap")
    @classmethod
    def _auto_or_some(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> int | str:
        try:
            found: int | str = handler(value)
        except ValidationError:
            found = 0
        if found != "auto" and not 1 <= int(found) <= 10_000:
            raise ValueError("must be auto or between 1 and 10,000")
        return found

    @field_validator("class_weights", mode="wrap")
    @classmethod
    def _balanced_or_by_class(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            message = "must be balanced, or a weight of 0 or more by class such as 0: 1.0, 1: 2.5"
            raise ValueError(message) from None


class JobSpec(Strict):
    """One job, complete: the same document always means the same run."""

    version: Literal["lockstep/v1"] = VERSION
    name: str = Field(min_length=1, max_length=120, title="Name")
    kind: JobKind = Field(
        "train",
        title="Kind",
        description="Train, or put a checkpoint's weights to use: evaluate them on the validation and test examples, "
        "predict examples into a file, or export them.",
    )
    dataset: Choice
    model: Choice
    strategy: Choice
    training: Training
    checkpoint: Checkpoint | None = Field(
        None, title="Checkpoints", description="When to write them, and which to keep: `every_steps`, `keep`, ..."
    )
    resume: Resume | None = Field(
        None, title="Go on from", description="A checkpoint of an earlier job; by hand use --resume instead."
    )
    predict: Predict | None = Field(
        None, title="Predict", description="For the kind predict: `split` says which examples."
    )
    export: tuple[Export, ...] = Field(
        ("keras",), min_length=1, title="Export", description="Formats that the trained model is saved in."
    )
    tags: tuple[Annotated[str, Field(pattern=r"^[\w.:-]{1,40}$")], ...] = Field(
        (), max_length=20, title="Tags", description="Up to 40 letters, digits and . _ : - each."
    )

    @model_validator(mode="before")
    @classmethod
    def _nothing_to_train(cls, data: Any) -> Any:
        takes_steps = not isinstance(data, dict) or data.get("kind", "train") == "train"
        return data if takes_steps else {"training": {}, **data}

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
    def task(self) -> Task:
        """What is trained: what the dataset's targets are for, unless the model trains something else."""
        task: Task = getattr(catalog.find("model", self.model.name).module, "task", self.dataset_info.task)
        return task

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
    def predicted(self) -> str:
        """Which examples a job of the kind predict predicts: test, validation, training or all."""
        split = self.predict.split if self.predict else "auto"
        whole = "test" if self.dataset_info.test_samples else "all"
        return whole if split == "auto" else split

    @property
    def held_out(self) -> float:
        """The part of the training data that is held out: none of it where all of it is predicted."""
        return 0.0 if self.kind == "predict" and self.predicted == "all" else self.training.validation_split

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps that the training data is enough for (the remainder is dropped); 1 where none are taken."""
        if self.kind != "train":
            return 1
        return self.dataset_info.training_samples(self.training.validation_split) // self.samples_per_step

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole job, 0 for a kind of job that takes none."""
        if self.kind != "train":
            return 0
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


def _spec_problems(error: ValidationError, data: dict[str, Any]) -> list[Problem]:
    given = data.get("version")
    if given is not None and given != VERSION:
        return [Problem("version", "is not a version that this Lockstep reads", given, f"Use {VERSION}")]
    return [_clean(problem) for problem in problems_of(error, JobSpec)] + _choices(data)


def _choices(data: dict[str, Any]) -> list[Problem]:
    """What is wrong with the choices that can be read, so that a fault elsewhere hides nothing of theirs."""
    found: list[Problem] = []
    for kind in catalog.FOLDERS:
        with contextlib.suppress(ValidationError):
            found += choice_problems(kind, Choice.model_validate(data.get(kind)))
    return found


def _clean(problem: Problem) -> Problem:
    """Pydantic puts the tag of a union into the path (`training.optimizer.adam.beta_1`); people did not write it."""
    parts = problem.path.split(".")
    if parts[:2] == ["training", "optimizer"] and len(parts) > 2 and parts[2] in OPTIMIZERS:
        del parts[2]
    return Problem(".".join(parts), problem.message, problem.value, problem.remedy)


def to_json(spec: JobSpec) -> str:
    """The document as JSON, one line."""
    return json.dumps(spec.to_dict(), ensure_ascii=False)
