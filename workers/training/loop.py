"""The one loop: the outer half knows the clock, the epochs and the reports; the inner one (steps.py) the maths."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from workers.contract.assignment import Place
from workers.contract.events import Finished
from workers.training.building import build_model, narrate, started
from workers.training.checkpointing import checkpoints, resuming, saving
from workers.training.checkpointing.keeping import Keeping
from workers.training.data import Data, Position
from workers.training.distribution import Distribution
from workers.training.early_stopping import Patience
from workers.training.evaluation import Evaluator
from workers.training.failures import NotFiniteError
from workers.training.gauges import Gauges
from workers.training.objective import objective_of, training_objective
from workers.training.optimizers import build_optimizer, learning_rate_at
from workers.training.pace import Pace
from workers.training.reporter import CallReport, Reporter, Values
from workers.training.steps import Outcome

PHASE_SECONDS = 1.0
"""Phases that come and go faster are not told: short epochs would fill the log with them."""


class Loop:
    """One process's share of a job, from the built model to the saved one."""

    def __init__(self, place: Place, distribution: Distribution, data: Data, reporter: Reporter) -> None:
        self._place, self._spec = place, place.spec
        self._distribution, self._data, self._reporter = distribution, data, reporter
        self._objective = objective_of(self._spec)
        self._gauges = Gauges(place.process, reporter)
        self._position = Position(steps_per_epoch=self._spec.steps_per_epoch)
        self._samples_per_step = self._spec.samples_per_step
        self._pace = Pace(self._spec.training.steps_per_call)
        self._metrics: dict[str, float] = {}
        self._evaluators: dict[str, Evaluator] = {}
        self._taken: dict[int, int] = {}
        self._patience = Patience(self._spec.training.early_stopping)
        self._told = 0.0

    def build(self) -> None:
        """Model and optimizer as replicated variables, data on the devices. The same seed gives the same weights."""
        self.model = build_model(self._place, self._distribution)
        self._optimizer = self._distribution.optimizer(self.model, lambda: build_optimizer(self._spec))
        self._keeping = Keeping(
            self._place,
            self._distribution,
            self.model,
            self._optimizer,
            patience=self._patience,
            reporter=self._reporter,
        )
        if self._place.resume:
            self._resume(Path(self._place.resume))
        self._distribution.vary_dropout(self.model)
        minimised = training_objective(self._spec, self._data.training)
        self._steps = self._distribution.steps(self.model, self._optimizer, minimised, self._spec)
        self._steps.place(self._data.training, self._data.scale)

    def _resume(self, checkpoint: Path) -> None:
        """Take over a checkpoint's state, and go on from its place in the data. Raises CheckpointError."""
        manifest = checkpoints.read_manifest(checkpoint)
        arrays = resuming.arrays_for(
            self._spec, checkpoint, manifest, self._distribution.shapes(self.model, self._optimizer)
        )
        self._distribution.import_state(self.model, self._optimizer, arrays)
        self._metrics = dict(manifest.metrics)
        self._position.step = self._distribution.first_step = resuming.step_in(self._spec, manifest)
        self._keeping.resumed(manifest, self._position.step)

    def run(self) -> None:
        """Train, evaluate, save, or pause on the way. Raises NotFiniteError when the spec says to stop on NaN."""
        if self._place.chief:
            self._reporter.write(
                started(self._place, self._distribution, self._data, self.model, steps_per_call=self._pace.steps)
            )
        # The gauges' first points belong to the step that the job goes on from.
        self._reporter.write(Values(self._position.step, self._position.epoch + 1, time.time(), {}))
        self._gauges.start()
        self._reporter.phase("compiling", f"Compiling the first step of {self.model.count_params():,} parameters")
        try:
            self._train()
            if self._keeping.paused:
                self._tell_paused()
                return
            self._evaluate("test", self._data.test)
            self._gauges.stop()
            self._save()
        finally:
            self._keeping.finish()

    def _train(self) -> None:
        seconds = 0.0
        first = True
        done = time.monotonic()
        while self._position.step < self._spec.total_steps and not self._keeping.paused and not self._patience.reason:
            if first or self._position.step_in_epoch == 0:
                self._steps.begin_epoch(self._position.epoch)
            count, fence = self._next_count()
            epoch = self._position.epoch + 1
            hints = self._keeping.hints(seconds)
            begin, began = time.time(), time.monotonic()
            outcome = self._steps.run(self._position.step_in_epoch, count, hints, fence)
            ended = time.monotonic()
            waited, busy = began - done + outcome.waited, ended - began - outcome.waited
            # The first call is spent on compiling: it says nothing about what a step costs.
            seconds = 0.0 if first else busy / count
            self._position.step += count
            self._pace.learn(outcome.hints.seconds_per_step)
            self._keeping.hear(outcome.hints)
            self._report(outcome, epoch, begin, busy, waited, compiled=first)
            if first:
                self._tell_training(epoch)
            first = False
            done = self._after_call(epoch, ended)

    def _after_call(self, epoch: int, ended: float) -> float:
        """Evaluate and save where it is time to; returns since when the next call has been waited for."""
        last = self._position.step == self._spec.total_steps
        evaluated = last or self._position.step_in_epoch == 0
        if evaluated:
            self._evaluate("val", self._data.validation)
            if not last and self._patience.look(self._metrics, epoch):
                self._narrate(self._patience.reason)
                last = True
            self._tell_training(epoch + 1)
        saved = not self._steps.under_way and self._keeping.keep(
            self._position.step, self._metrics, evaluated=evaluated, last=last
        )
        return time.monotonic() if evaluated or saved else ended

    def _next_count(self) -> tuple[int, int]:
        """Steps of the next call, and the step of the epoch from which on nothing may be begun in it."""
        place = self._position.step_in_epoch
        left_in_epoch = self._position.steps_per_epoch - place
        left_in_job = self._spec.total_steps - self._position.step
        left = min(left_in_epoch, left_in_job, self._keeping.left(self._position.step))
        if self._keeping.waiting:
            # No more than what is under way, so that then the state is one of a whole number of steps.
            return self._steps.under_way, place + self._steps.under_way
        return min(self._pace.steps, left), place + left

    def _report(
        self, outcome: Outcome, epoch: int, begin: float, seconds: float, waited: float, *, compiled: bool
    ) -> None:
        batch, count, step = self._samples_per_step, len(outcome.losses), self._position.step
        trained = self._objective.of_steps(outcome.losses, outcome.metrics / batch)
        self._metrics |= {name: float(values[-1]) for name, values in trained.items()}
        values = {
            "learning_rate": learning_rate_at(self._spec, step),
            "samples_seen": float(step * batch),
            "epoch": step / self._position.steps_per_epoch,
        }
        if not compiled:
            speed = {"throughput": count * batch / (seconds + waited), "step_time": seconds / count}
            values |= speed | {"input_wait": waited / count}
        if self._place.chief:
            first = step - count + 1
            self._report_replicas(outcome, first, epoch, begin + seconds)
            self._reporter.write(CallReport(first, epoch, begin, begin + seconds, trained, values, outcome.replicas))
        else:
            self._reporter.write(Values(step, epoch, begin + seconds, {}))
        if self._spec.training.stop_on_nan and not np.isfinite(outcome.losses).all():
            bad = int(np.flatnonzero(~np.isfinite(outcome.losses))[0])
            raise NotFiniteError(step - count + 1 + bad, float(outcome.losses[bad]))

    def _report_replicas(self, outcome: Outcome, first: int, epoch: int, end: float) -> None:
        """Where each step was one replica's: how many steps it has taken, at its latest one."""
        if outcome.notice:
            self._reporter.phase("training", outcome.notice)
            self._narrate(outcome.notice)
        latest: dict[int, int] = {}
        for index, replica in enumerate(outcome.replicas):
            self._taken[replica] = self._taken.get(replica, 0) + 1
            latest[replica] = first + index
        for replica, step in sorted(latest.items(), key=lambda pair: pair[1]):
            self._reporter.write(Values(step, epoch, end, {"worker_steps": float(self._taken[replica])}, replica))

    def _evaluate(self, name: str, split: Any) -> None:
        if not len(split):
            return
        self._distribution.settle(self.model)
        if time.monotonic() - self._told >= PHASE_SECONDS or name == "test":
            what = "validation" if name == "val" else "test"
            self._reporter.phase("evaluating", f"On {len(split):,} {what} samples")
        if name not in self._evaluators:
            share = self._spec.training.global_batch // self._distribution.replicas
            self._evaluators[name] = self._distribution.evaluator(
                self.model, self._objective, split=split, scale=self._data.scale, batch=share
            )
        found = {f"{name}_{key}": value for key, value in self._evaluators[name].run().items()}
        self._metrics |= found
        if self._place.chief:
            epoch = max(1, -(-self._position.step // self._position.steps_per_epoch))
            self._reporter.write(Values(self._position.step, epoch, time.time(), found))

    def _tell_training(self, epoch: int) -> None:
        if time.monotonic() - self._told >= PHASE_SECONDS and self._position.step < self._spec.total_steps:
            epochs = -(-self._spec.total_steps // self._position.steps_per_epoch)
            self._reporter.phase("training", f"Epoch {min(epoch, epochs)} of {epochs}")
            self._narrate(f"epoch {min(epoch, epochs)} of {epochs}")
            self._told = time.monotonic()

    def _tell_paused(self) -> None:
        self._gauges.stop()
        self._reporter.phase("saving", f"Paused at step {self._position.step:,}")
        self._narrate("paused")

    def _narrate(self, what: str) -> None:
        narrate(f"{what}, step {self._position.step:,}", self._metrics)

    def _save(self) -> None:
        self._distribution.settle(self.model)
        saving.save_all(self.model, self._place, self._reporter)
        self._keeping.finish()
        self._narrate("finished")
        if self._place.chief:
            self._reporter.write(
                Finished(
                    time=time.time(),
                    process=self._place.process.name,
                    metrics=self._metrics,
                    step=self._position.step,
                    stopped_early=self._patience.reason,
                )
            )
