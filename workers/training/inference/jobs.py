"""The kinds of job that take no steps: a checkpoint's weights are evaluated, predict examples, or are exported."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.contract.assignment import Place
from workers.contract.events import Finished
from workers.contract.kinds import PREDICTIONS
from workers.training.building import build_model, narrate, started
from workers.training.checkpointing import resuming, saving
from workers.training.data import Data, Split
from workers.training.distribution import Distribution
from workers.training.gauges import Gauges
from workers.training.inference import predictions
from workers.training.objective import objective_of
from workers.training.reporter import Reporter, Values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from workers.training.streams.streaming import Stream

TOLD_SECONDS = 1.0


class Inference(ABC):
    """One process's share of a job that takes no steps, from the built model to what is left of it. All at step 0."""

    def __init__(self, place: Place, distribution: Distribution, data: Data, reporter: Reporter) -> None:
        self._place, self._spec = place, place.spec
        self._distribution, self._data, self._reporter = distribution, data, reporter
        self._objective = objective_of(self._spec)
        self._batch = max(1, self._spec.training.global_batch // distribution.replicas)

    def build(self) -> None:
        """The model with the checkpoint's weights. Raises CheckpointError when they do not fit it."""
        import keras

        self.model = build_model(self._place, self._distribution)
        # Some strategies place the weights along with their optimizer; this one keeps nothing of its own.
        self._optimizer = self._distribution.optimizer(self.model, keras.optimizers.SGD)
        if self._place.resume:
            wanted = self._distribution.shapes(self.model, self._optimizer)
            arrays = resuming.weights_for(Path(self._place.resume), wanted)
            self._distribution.import_state(self.model, self._optimizer, arrays)
        self._distribution.settle(self.model)

    def run(self) -> None:
        """Do it and tell what came of it."""
        told = started(self._place, self._distribution, self._data, self.model, steps_per_call=1)
        gauges = Gauges(self._place.process, self._reporter)
        if self._place.chief:
            self._reporter.write(told)
        self._reporter.write(Values(0, 1, time.time(), {}))
        gauges.start()
        metrics = self._work()
        gauges.stop()
        narrate("finished", metrics)
        if self._place.chief:
            name = self._place.process.name
            self._reporter.write(Finished(time=time.time(), process=name, metrics=metrics, step=0))

    @abstractmethod
    def _work(self) -> dict[str, float]:
        """The metrics that were found, if any."""


class Evaluation(Inference):
    """Exact metrics of the validation examples and of the test examples.

    Where neither are any (nothing is held out, and the dataset has no test part), all examples are the test.
    """

    def _work(self) -> dict[str, float]:
        data = self._data
        parts = {"val": data.validation, "test": data.test}
        if not len(data.validation) and not len(data.test):
            parts = {"test": data.training}
        found: dict[str, float] = {}
        for name, split in parts.items():
            if len(split):
                found |= self._measured(name, split)
        return found

    def _measured(self, name: str, split: Any) -> dict[str, float]:
        what = "validation" if name == "val" else "test"
        self._reporter.phase("evaluating", f"On {len(split):,} {what} samples")
        evaluator = self._distribution.evaluator(
            self.model, self._objective, split=split, scale=self._data.scale, batch=self._batch
        )
        began = time.monotonic()
        found = {f"{name}_{key}": value for key, value in evaluator.run().items()}
        speed = {"throughput": len(split) / (time.monotonic() - began)}
        if self._place.chief:
            self._reporter.write(Values(0, 1, time.time(), found | speed))
        return found


class Prediction(Inference):
    """A row for each example in RUN/predictions.parquet."""

    def _work(self) -> dict[str, float]:
        blocks = self._blocks()
        if not self._place.chief:
            for _ in blocks:
                pass
            return {}
        artifact = saving.keep(PREDICTIONS, lambda file: predictions.write(file, self._spec, blocks), self._place)
        assert artifact is not None
        self._reporter.write(artifact)
        return {}

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        data = self._data
        parts: dict[str, list[Split | Stream]] = {
            "training": [data.training],
            "validation": [data.validation],
            "test": [data.test],
            "all": [data.training, data.test],
        }
        chosen = parts[self._spec.predicted]
        total, done = sum(map(len, chosen)), 0
        predictor = self._distribution.predictor(self.model, self._objective, scale=data.scale)
        self._reporter.phase("predicting", f"{total:,} examples")
        began = told = time.monotonic()
        for split in chosen:
            for block in predictor.run(split, self._batch):
                yield block
                done += len(block)
                now = time.monotonic()
                if now - told >= TOLD_SECONDS or done == total:
                    told = now
                    self._tell(done, total, done / (now - began))

    def _tell(self, done: int, total: int, throughput: float) -> None:
        self._reporter.phase("predicting", f"{done:,} of {total:,} examples")
        narrate(f"predicted {done:,} of {total:,} examples", {})
        if self._place.chief:
            self._reporter.write(Values(0, 1, time.time(), {"throughput": throughput}))


class Exporting(Inference):
    """The model's files, as a job that trained would leave them."""

    def _work(self) -> dict[str, float]:
        saving.save_all(self.model, self._place, self._reporter)
        return {}
