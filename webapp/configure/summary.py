"""The arithmetic of a spec before it runs: what the new-job page says beside the form."""

from __future__ import annotations

import dataclasses

from webapp.cluster import admission
from webapp.cluster.admission import Outlook
from webapp.cluster.models import Device
from webapp.configure.checking import Checked
from workers.contract import catalog
from workers.contract.data import DatasetInfo
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import JobSpec

FLOAT_BYTES = 4
SLOTS = {"sgd": 0, "momentum": 1, "rmsprop": 1, "adam": 2, "adamw": 2}
"""Copies of the weights that each optimizer keeps; RMSprop with momentum keeps one more."""


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes on one device: weights, gradients, optimizer state and the batch of each replica on it."""

    needed: int
    available: int | None

    @property
    def share(self) -> float | None:
        """Part of the device that is needed, None when nobody knows its size."""
        return self.needed / self.available if self.available else None


@dataclasses.dataclass(frozen=True)
class Summary:
    """All figures are exact but the memory, which leaves out what the layers hold between forward and backward pass."""

    spec: JobSpec
    info: DatasetInfo
    replicas: int
    processes: int
    batch_fits: bool
    parameters: int | None
    memory: Memory | None
    outlook: Outlook | None

    @property
    def per_replica_batch(self) -> int:
        """Examples per step and replica."""
        return self.spec.training.global_batch // self.replicas

    @property
    def scaled(self) -> bool:
        """Whether the learning rate differs from the one that was typed."""
        return self.spec.peak_learning_rate != self.spec.training.optimizer.learning_rate

    @property
    def summed(self) -> bool:
        """Whether the effective learning rate differs from the one that the optimizer is given."""
        return self.spec.training.aggregation.method == "sum"

    @property
    def training_samples(self) -> int:
        """Examples of one epoch."""
        return self.info.training_samples(self.spec.training.validation_split)

    @property
    def validation_samples(self) -> int:
        """Examples that are held out."""
        return self.info.validation_samples(self.spec.training.validation_split)

    @property
    def examples(self) -> int:
        """What a job that takes no steps looks at."""
        held, rest, test = self.validation_samples, self.training_samples, self.info.test_samples
        if self.spec.kind == "predict":
            return {"validation": held, "training": rest, "test": test}.get(self.spec.predicted, held + rest + test)
        return held + test or rest


def summarize(checked: Checked) -> Summary | None:
    """What can be said of a spec, also of one with problems; None while its choices cannot be read."""
    spec = checked.spec
    if spec is None:
        return None
    try:
        info, layout = spec.dataset_info, spec.layout
        parameters = None if _about(checked.problems, "model.") else _parameters(spec, info)
    except SpecInvalid:
        return None
    outlook = None if checked.problems else admission.outlook(spec)
    memory = None if parameters is None else _memory(spec, info, parameters, outlook)
    fits = not _about(checked.problems, "training.global_batch")
    return Summary(spec, info, layout.replicas, len(layout.processes), fits, parameters, memory, outlook)


def _about(problems: list[Problem], *prefixes: str) -> bool:
    return any(problem.path.startswith(prefix) for problem in problems for prefix in prefixes)


def _parameters(spec: JobSpec, info: DatasetInfo) -> int:
    entry = catalog.find("model", spec.model.name)
    count: int = entry.module.count_parameters(info, entry.parse(spec.model.options))
    return count


def _memory(spec: JobSpec, info: DatasetInfo, parameters: int, outlook: Outlook | None) -> Memory:
    layout = spec.layout
    optimizer = spec.training.optimizer
    slots = SLOTS.get(optimizer.name, 2) + bool(optimizer.name == "rmsprop" and optimizer.momentum)
    batch = spec.training.global_batch / layout.replicas * info.features
    copies = 2 + slots if spec.kind == "train" else 1
    shards = max(process.shards for process in layout.processes)
    replica = FLOAT_BYTES * (copies * parameters / shards + batch)
    split = max(process.split for process in layout.processes)
    return Memory(int(replica * split), _device_bytes(outlook))


def _device_bytes(outlook: Outlook | None) -> int | None:
    """Memory of the smallest device that the job would get."""
    sizes: list[int] = []
    for placement in outlook.placements if outlook else ():
        for device in placement.devices:
            kind, _, index = device.partition(":")
            found = Device.objects.filter(host__name=placement.host, kind=kind, index=int(index)).first()
            if found is None or found.memory_bytes is None:
                return None
            sizes.append(found.memory_bytes)
    return min(sizes, default=None)
