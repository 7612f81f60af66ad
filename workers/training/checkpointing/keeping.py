"""When a job saves its state, and when it pauses: the same at the same step in each of its processes."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from workers.contract.assignment import Place
from workers.contract.keeping import Checkpoint
from workers.contract.metrics import metric
from workers.training.checkpointing import checkpoints
from workers.training.checkpointing.checkpoints import Best, Manifest, Waiting
from workers.training.checkpointing.writing import CheckpointWriter, Snapshot
from workers.training.distribution import Distribution
from workers.training.early_stopping import Patience
from workers.training.reporter import Reporter
from workers.training.steps import Hints

PAUSE, PAUSED, NOW = "pause", "paused", "checkpoint-now"
"""Files of the run folder: asks for a pause; says that the job is paused; asks for a checkpoint."""
FOREVER = 2**62


class Keeping:
    """One process's share of the checkpoints: every process decides and reads the state, the chief writes.

    What only some processes know (a file, the time) is handed in before a call and decided on after it, with the means
    over all of them; what all of them know (the step, a metric) is decided on at once.
    """

    def __init__(
        self,
        place: Place,
        distribution: Distribution,
        model: Any,
        optimizer: Any,
        *,
        patience: Patience,
        reporter: Reporter,
    ) -> None:
        self._place, self._run, self._rule = place, Path(place.run), place.spec.checkpoint
        self._distribution, self._model, self._optimizer = distribution, model, optimizer
        self._reporter = reporter
        self._writer: CheckpointWriter | None = None
        if place.chief:
            keep = (self._rule or Checkpoint(every_steps=1)).keep
            self._writer = CheckpointWriter(self._run / checkpoints.FOLDER, reporter, keep)
        self._patience = patience
        self._best_by = self._rule.best if self._rule else None
        self._asked = Hints()
        self._best: Best | None = None
        self._newest = -1
        self._due = self._next_time()
        self.paused = False

    def resumed(self, manifest: Manifest, step: int) -> None:
        """The job goes on from there: that state needs no second checkpoint, and the best so far was before it."""
        self._newest = step
        self._patience.best, self._patience.waited = manifest.early_stopping.best, manifest.early_stopping.waited
        if manifest.best is not None and manifest.best.metric == self._best_by:
            self._best = manifest.best
            if self._writer is not None:
                self._writer.best = manifest.best.name

    def hints(self, seconds_per_step: float) -> Hints:
        """What this process hands in before a call."""
        save = self._place.chief and ((self._run / NOW).exists() or time.monotonic() >= self._due)
        return Hints(seconds_per_step, float((self._run / PAUSE).exists()), float(save))

    def hear(self, hints: Hints) -> None:
        """What all processes together handed in before the call that has ended."""
        self._asked = hints

    @property
    def waiting(self) -> bool:
        """Whether somebody asked for something that is to be done as soon as no step is under way."""
        return self._asked.pause > 0 or self._asked.save > 0

    def left(self, step: int) -> int:
        """Steps from `step` on until the state is to be saved whatever happens."""
        every = self._rule.every_steps if self._rule else None
        return every - step % every if every else FOREVER

    def keep(self, step: int, metrics: dict[str, float], *, evaluated: bool, last: bool) -> bool:
        """After a call that ended at `step`, while no step is under way: save or pause, if it is time to.

        `evaluated` says that the metrics of the evaluation are of this step, `last` that there are no more steps.
        Returns whether it took time.
        """
        every = self._rule.every_steps if self._rule else None
        planned = bool(every and step % every == 0) or (last and self._rule is not None)
        due = planned or self.waiting
        # A better evaluation is reason enough for a checkpoint; the loss of a step, which comes and goes, is not.
        best = (due if self._best_by == "loss" else evaluated) and self._improved(step, metrics)
        pausing = self._asked.pause > 0 and not last
        if pausing:
            self._reporter.phase("saving", f"Pausing at step {step:,}")
        if due or best:
            self._save(step, metrics, best=best)
        if pausing:
            self._pause()
        self._asked = Hints()
        return due or best

    def finish(self) -> None:
        """Return when the last checkpoint is on the disk."""
        if self._writer is not None:
            self._writer.wait()

    def _improved(self, step: int, metrics: dict[str, float]) -> bool:
        """Whether the metric that the best checkpoint is kept by is better than ever."""
        name = self._best_by
        if name is None or math.isnan(metrics.get(name, math.nan)):
            return False
        value, sign = metrics[name], -1 if metric(name).better == "max" else 1
        if self._best is not None and sign * value >= sign * self._best.value:
            return False
        self._best = Best(metric=name, value=value, name=f"step-{step}")
        return True

    def _save(self, step: int, metrics: dict[str, float], *, best: bool) -> None:
        if self._place.chief:
            # Before the state is read: whoever asks from here on wants a later one.
            (self._run / NOW).unlink(missing_ok=True)
        self._due = self._next_time()
        if step == self._newest:
            return
        self._newest = step
        arrays = self._distribution.export_state(self._model, self._optimizer)
        if self._writer is not None:
            spec = self._place.spec
            manifest = Manifest(
                name=f"step-{step}",
                step=step,
                samples_seen=step * spec.samples_per_step,
                time=time.time(),
                spec=spec,
                metrics=metrics,
                best=self._best,
                early_stopping=Waiting(best=self._patience.best, waited=self._patience.waited),
            )
            self._writer.put(Snapshot(manifest, arrays, best))

    def _pause(self) -> None:
        self.finish()
        saved = self._writer is None or self._writer.failed is None
        if self._distribution.agree(saved):
            (self._run / PAUSED).touch()
            self.paused = True
            return
        # The steps that nobody could write down would be lost: it goes on, and says why it could not be written.
        (self._run / PAUSE).unlink(missing_ok=True)
        self._newest = -1

    def _next_time(self) -> float:
        minutes = self._rule.every_minutes if self._rule else None
        return time.monotonic() + minutes * 60 if minutes else float("inf")
