"""Whether the choices of a spec fit together: what the fields' own types cannot see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.contract import catalog, keeping
from workers.contract.kinds import kind_problems
from workers.contract.objectives import objective_problems
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.sharding import sharding_problems

if TYPE_CHECKING:
    from workers.contract.spec import Choice, JobSpec


def check(spec: JobSpec) -> list[Problem]:
    """What the fields' own types cannot see: unknown plugins, options, and choices that do not fit together."""
    found = _plugin_problems(spec) or _dataset_problems(spec)
    return found or kind_problems(spec) + _fit_problems(spec) + (
        _training_problems(spec) if spec.kind == "train" else []
    )


def _plugin_problems(spec: JobSpec) -> list[Problem]:
    return [problem for kind in catalog.FOLDERS for problem in choice_problems(kind, getattr(spec, kind))]


def choice_problems(kind: catalog.Kind, choice: Choice) -> list[Problem]:
    """An unknown plugin, or what its options cannot be; paths as in the spec."""
    try:
        entry = catalog.find(kind, choice.name)
    except SpecInvalid as error:
        return error.problems
    try:
        entry.parse(choice.options)
    except SpecInvalid as error:
        return [problem.under(f"{kind}.options") for problem in error.problems]
    return []


def _dataset_problems(spec: JobSpec) -> list[Problem]:
    """Options that are each fine, and do not fit what was found in the dataset's files."""
    try:
        _ = spec.dataset_info
    except SpecInvalid as error:
        return [problem.under("dataset.options") for problem in error.problems]
    return []


def _fit_problems(spec: JobSpec) -> list[Problem]:
    problems: list[Problem] = []
    strategy, model = catalog.find("strategy", spec.strategy.name), catalog.find("model", spec.model.name)
    if hasattr(strategy.module, "check"):
        found = strategy.module.check(spec.options_of("strategy"))
        problems += [problem.under("strategy.options") for problem in found]
    if hasattr(strategy.module, "check_kernels") and hasattr(model.module, "kernels"):
        kernels = model.module.kernels(spec.dataset_info, spec.options_of("model"))
        found = strategy.module.check_kernels(spec.options_of("strategy"), kernels)
        problems += [problem.under("strategy.options") for problem in found]
    facts = getattr(spec.options_of("model"), "facts", None)
    if hasattr(strategy.module, "check_obstacles") and facts is not None:
        found = strategy.module.check_obstacles(facts.obstacles, training=spec.kind == "train")
        problems += [problem.under("strategy") for problem in found]
    if hasattr(model.module, "check"):
        found = model.module.check(spec.options_of("model"), spec.dataset_info)
        problems += [problem.under("model") for problem in found]
    if getattr(strategy.module, "on_mesh", False) and spec.kind in getattr(model.module, "off_mesh", ()):
        message = f"cannot {spec.kind} {model.name}: DTensor has no layout for some of its operations"
        remedy = "Use mirrored or multi_worker_mirrored, or the model resnet"
        problems.append(Problem("strategy.name", message, spec.strategy.name, remedy))
    return problems


def _training_problems(spec: JobSpec) -> list[Problem]:
    """What does not fit together only where steps are taken."""
    problems: list[Problem] = []
    strategy = catalog.find("strategy", spec.strategy.name)
    if hasattr(strategy.module, "check_training"):
        found = strategy.module.check_training(spec.options_of("strategy"), spec.training)
        problems += [problem.under("training") for problem in found]
    problems += keeping.check(spec.checkpoint, spec.task, spec.training.validation_split)
    problems += objective_problems(spec) + sharding_problems(spec)
    return problems + _jit_problems(spec) + (_batch_problems(spec) or _warmup_problems(spec))


def _warmup_problems(spec: JobSpec) -> list[Problem]:
    """The schedule begins where the warm-up ends."""
    given, steps = spec.training.warmup_steps, spec.total_steps
    if given <= steps:
        return []
    message = f"lasts longer than the job, which takes {steps:,} steps"
    return [Problem("training.warmup_steps", message, given, f"Use at most {steps}, or train longer")]


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
