"""Steps and evaluation on a DTensor mesh, of data that is read from disk meanwhile; the maths is that of steps.py."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.training.data import Split
from workers.training.evaluation import SMALLEST_BATCH, padded
from workers.training.inference.predictor import blocks_of
from workers.training.mesh.steps import MeshedEvaluator, MeshedSteps
from workers.training.objective import Objective
from workers.training.steps import Hints, Outcome
from workers.training.streams.streamed import Ahead, walk_of
from workers.training.streams.streaming import Stream

if TYPE_CHECKING:
    from workers.training.mesh.meshed import Meshed


class StreamedMeshSteps(MeshedSteps):
    """Every process reads the stream, and every device gets the examples of the step that it takes."""

    def place(self, split: Any, scale: float) -> None:
        """`split` is a Stream; nothing is read yet."""
        batch, micro_batches = self._spec.training.global_batch, self._spec.micro_batches
        self._ahead = Ahead(walk_of(split, self._spec, self._mesh), [slice(batch)], micro_batches)
        self._scale = self._mesh.put(np.float32(scale))
        rows = np.arange(batch * micro_batches, dtype=np.int32).reshape(micro_batches, batch)
        self._order = [self._mesh.split_batch(some) for some in rows]
        self._compile()

    def begin_epoch(self, epoch: int) -> None:
        """The reader goes on by itself where it stands before that epoch."""
        self._first = epoch * self._spec.steps_per_epoch

    def run(self, start: int, count: int, hints: Hints, fence: int) -> Outcome:
        """As MeshedSteps.run."""
        before = self._ahead.waited
        outcome = super().run(start, count, hints, fence)
        return dataclasses.replace(outcome, waited=self._ahead.waited - before)

    def _examples(self, place: int) -> tuple[tuple[Any, ...], list[Any]]:
        [(features, targets)] = self._ahead.take(self._first + place)
        return (self._mesh.put(features), self._mesh.put(targets), self._scale), self._order


class StreamedMeshEvaluator(MeshedEvaluator):
    """Every process reads the stream, chunk by chunk; the rows of the mesh share each of them."""

    def __init__(self, mesh: Meshed, model: Any, objective: Objective, *, split: Any, scale: float, batch: int) -> None:
        """As MeshedEvaluator; `split` is a Stream."""
        nothing = Split(np.zeros((1, 1), np.float32), np.zeros(1, np.int32))
        super().__init__(mesh, model, objective, split=nothing, scale=scale, batch=batch)
        self._mesh = mesh
        self._stream: Stream = split
        self._rows = max(batch, SMALLEST_BATCH) * mesh.replicas

    def run(self) -> dict[str, float]:
        """Mean loss and metric over all rows, by name."""
        from tensorflow.experimental import dtensor

        sums = np.zeros(3)
        for rows in blocks_of(self._stream, self._rows):
            features, targets = (padded(values, self._rows) for values in self._stream.source.decode(rows))
            mask = (np.arange(self._rows) < len(rows[1])).astype(np.float32)
            chunk = map(self._mesh.split_batch, (features, targets, mask))
            sums += dtensor.unpack(self._compiled(*chunk, self._scale))[0].numpy()
        return self._objective.named(float(sums[0] / sums[2]), float(sums[1] / sums[2]))
