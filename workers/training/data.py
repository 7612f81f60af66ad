"""Splits a dataset and decides the order of its samples, by the seed alone: never by how many replicas there are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.contract import catalog
from workers.contract.spec import JobSpec, Training
from workers.training.arrays import Arrays, DataError, data_home

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.streams.streaming import Stream

HELD_OUT = 5_318_008
"""Seed of the validation split, a constant: jobs that differ in their seed are measured on the same examples."""


@dataclasses.dataclass(frozen=True)
class Split:
    """Examples that belong together: features [samples, *shape], targets [samples] or [samples, targets]."""

    features: NDArray[Any]
    targets: NDArray[Any]

    def __len__(self) -> int:
        return len(self.features)


@dataclasses.dataclass(frozen=True)
class Data:
    """A job's data. `validation` and `test` may be empty; `scale` brings features to what the model expects."""

    training: Split | Stream
    validation: Split | Stream
    test: Split
    scale: float


@dataclasses.dataclass
class Position:
    """Where in the data a job stands: all that is needed to go on from there."""

    step: int = 0
    steps_per_epoch: int = 1

    @property
    def epoch(self) -> int:
        """Of the next step, counted from 0."""
        return self.step // self.steps_per_epoch

    @property
    def step_in_epoch(self) -> int:
        """Of the next step, counted from 0."""
        return self.step % self.steps_per_epoch


def nothing(spec: JobSpec) -> Data:
    """What a job needs that looks at no example."""
    empty = Split(np.zeros((0, *spec.dataset_info.shape), np.float32), np.zeros(0, np.int32))
    return Data(empty, empty, empty, 1.0)


def load(spec: JobSpec) -> Data:
    """Load the job's dataset and hold out its validation part. Raises DataError."""
    entry = catalog.find("dataset", spec.dataset.name)
    if spec.dataset_info.files is not None:
        return _stream(spec)
    arrays: Arrays = entry.module.load(spec.options_of("dataset"), data_home())
    info = spec.dataset_info
    if arrays.features.shape != (info.samples, *info.shape):
        raise DataError(
            f"The {entry.title} files hold {arrays.features.shape} instead of {(info.samples, *info.shape)}; "
            f"delete them from {data_home() / 'datasets'} so that they are fetched again."
        )
    training, validation = _hold_out(arrays, info.validation_samples(spec.held_out))
    test = Split(arrays.features[:0], arrays.targets[:0])
    if arrays.test_features is not None and arrays.test_targets is not None:
        test = Split(arrays.test_features, arrays.test_targets)
    return Data(training, validation, test, arrays.scale)


def _stream(spec: JobSpec) -> Data:
    """A dataset that stays on disk. There is no test part."""
    from workers.training.streams.streaming import HeldOut, Stream

    source = catalog.find("dataset", spec.dataset.name).module.stream(spec.options_of("dataset"))
    info = spec.dataset_info
    held = info.validation_samples(spec.held_out)
    held_out = HeldOut(info.samples, held)
    training = Stream(source, held_out, info.samples - held)
    return Data(training, Stream(source, held_out, held, validation=True), nothing(spec).test, source.scale)


def _hold_out(arrays: Arrays, count: int) -> tuple[Split, Split]:
    if not count:
        return Split(arrays.features, arrays.targets), Split(arrays.features[:0], arrays.targets[:0])
    order = np.random.default_rng(HELD_OUT).permutation(len(arrays.features))
    kept, held = np.sort(order[count:]), np.sort(order[:count])
    return Split(arrays.features[kept], arrays.targets[kept]), Split(arrays.features[held], arrays.targets[held])


def epoch_order(samples: int, *, seed: int, epoch: int, shuffle: bool, worker: int = 0) -> NDArray[np.int32]:
    """The samples' indexes in the order of one epoch (counted from 0), int32 [samples].

    `worker` tells orders apart where each worker has its own; 0 has the one that all share elsewhere.
    """
    if not shuffle:
        return np.arange(samples, dtype=np.int32)
    chosen = (seed, epoch, worker) if worker else (seed, epoch)
    return np.random.default_rng(chosen).permutation(samples).astype(np.int32)


def worker_order(samples: int, *, training: Training, worker: int, batch: int, first: int, steps: int) -> NDArray[Any]:
    """What a worker sees that walks through all samples in an order of its own: int32 [steps * batch].

    `first` is the number of the first of these steps, counted over the whole job: the worker's passes go on where
    epochs end, so that it sees every sample equally often (but for the remainder of `batch` in each pass).
    """
    per_pass = samples // batch
    numbers = range(first, first + steps)
    passes = sorted({number // per_pass for number in numbers})
    orders = {
        each: epoch_order(samples, seed=training.seed, epoch=each, shuffle=training.shuffle, worker=worker)
        for each in passes
    }
    parts = [orders[n // per_pass][n % per_pass * batch : (n % per_pass + 1) * batch] for n in numbers]
    return np.concatenate(parts)


def replica_batches(
    order: NDArray[np.int32], *, global_batch: int, replicas: int, replica: int, micro_batches: int = 1
) -> NDArray[np.int32]:
    """One replica's share of each whole step: int32 [steps, micro_batches, global_batch / replicas]."""
    share = global_batch // replicas
    steps = len(order) // (global_batch * micro_batches)
    batches = order[: steps * micro_batches * global_batch].reshape(steps, micro_batches, global_batch)
    return np.ascontiguousarray(batches[..., replica * share : (replica + 1) * share])
