"""The one loop: the outer half knows the clock, the epochs and the reports; the inner one (steps.py) the maths."""

from __future__ import annotations

import platform
import sys
import time
from typing import Any

import numpy as np

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.contract.events import Finished, ReplicaInfo, Started
from workers.training import initial_model, saving
from workers.training.data import Data, Position
from workers.training.distribution import Distribution
from workers.training.evaluation import Evaluator
from workers.training.failures import NotFiniteError
from workers.training.gauges import Gauges
from workers.training.objective import objective_of
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
        self._objective = objective_of(self._spec.dataset_info)
        self._gauges = Gauges(place.process, reporter)
        self._position = Position(steps_per_epoch=self._spec.steps_per_epoch)
        self._samples_per_step = self._spec.samples_per_step
        self._pace = Pace(self._spec.training.steps_per_call)
        self._metrics: dict[str, float] = {}
        self._evaluators: dict[str, Evaluator] = {}
        self._taken: dict[int, int] = {}
        self._told = 0.0

    def build(self) -> None:
        """Model and optimizer as replicated variables, data on the devices. The same seed gives the same weights."""
        import keras

        training, info = self._spec.training, self._spec.dataset_info
        if training.mixed_precision != "none":
            keras.mixed_precision.set_dtype_policy(f"mixed_{training.mixed_precision}")
        given = initial_model.read(training.initial_model) if training.initial_model is not None else []
        keras.utils.set_random_seed(training.seed)
        build_model = catalog.find("model", self._spec.model.name).module.build_model
        with self._distribution.scope():
            self.model = build_model(info.shape, info.outputs, self._spec.options_of("model"))
            if training.initial_model is not None:
                initial_model.assign(self.model, given, training.initial_model)
        self._optimizer = self._distribution.optimizer(self.model, lambda: build_optimizer(self._spec))
        self._distribution.vary_dropout(self.model)
        self._steps = self._distribution.steps(self.model, self._optimizer, self._objective, self._spec)
        self._steps.place(self._data.training, self._data.scale)

    def run(self) -> None:
        """Train, evaluate, save. Raises NotFiniteError when the spec says to stop on NaN."""
        if self._place.chief:
            self._reporter.write(self._started())
        self._gauges.start()
        self._reporter.phase("compiling", f"Compiling the first step of {self.model.count_params():,} parameters")
        self._train()
        self._evaluate("test", self._data.test)
        self._gauges.stop()
        self._save()

    def _train(self) -> None:
        seconds = 0.0
        done = time.monotonic()
        while self._position.step < self._spec.total_steps:
            if self._position.step_in_epoch == 0:
                self._steps.begin_epoch(self._position.epoch)
            first, count = self._position.step, self._next_count()
            epoch = self._position.epoch + 1
            begin, began = time.time(), time.monotonic()
            outcome = self._steps.run(self._position.step_in_epoch, count, seconds)
            waited, ended = began - done, time.monotonic()
            # The first call is spent on compiling: it says nothing about what a step costs.
            seconds = (ended - began) / count if first else 0.0
            self._position.step += count
            self._pace.learn(outcome.seconds_per_step)
            self._report(outcome, epoch, begin, ended - began, waited, compiled=not first)
            if not first:
                self._tell_training(epoch)
            done = ended
            if self._position.step_in_epoch == 0 or self._position.step == self._spec.total_steps:
                self._evaluate("val", self._data.validation)
                self._tell_training(epoch + 1)
                done = time.monotonic()

    def _next_count(self) -> int:
        """Steps of the next call: within the epoch and within the job."""
        left_in_epoch = self._position.steps_per_epoch - self._position.step_in_epoch
        return min(self._pace.steps, left_in_epoch, self._spec.total_steps - self._position.step)

    def _report(
        self, outcome: Outcome, epoch: int, begin: float, seconds: float, waited: float, *, compiled: bool
    ) -> None:
        batch, count, step = self._samples_per_step, len(outcome.losses), self._position.step
        metric = float(outcome.metrics.sum() / (count * batch))
        self._metrics |= {"loss": float(outcome.losses[-1]), self._objective.metric: metric}
        values = {
            self._objective.metric: metric,
            "learning_rate": learning_rate_at(self._spec, step),
            "samples_seen": float(step * batch),
            "epoch": step / self._position.steps_per_epoch,
        }
        if not compiled:
            speed = {"throughput": count * batch / (seconds + waited), "step_time": seconds / count}
            values |= speed | {"input_wait": waited / count}
        if self._place.chief:
            first = step - count + 1
            self._report_replicas(outcome, first, epoch, begin, seconds)
            self._reporter.write(CallReport(first, epoch, begin, begin + seconds, outcome.losses, values))
        else:
            self._reporter.write(Values(step, epoch, begin + seconds, {}))
        if self._spec.training.stop_on_nan and not np.isfinite(outcome.losses).all():
            bad = int(np.flatnonzero(~np.isfinite(outcome.losses))[0])
            raise NotFiniteError(step - count + 1 + bad, float(outcome.losses[bad]))

    def _report_replicas(self, outcome: Outcome, first: int, epoch: int, begin: float, seconds: float) -> None:
        """Where each step was one replica's: the loss under its number, and how many steps it has taken."""
        if outcome.notice:
            self._reporter.phase("training", outcome.notice)
            self._narrate(outcome.notice)
        for index, replica in enumerate(outcome.replicas):
            self._taken[replica] = self._taken.get(replica, 0) + 1
            values = {"loss": float(outcome.losses[index]), "worker_steps": float(self._taken[replica])}
            moment = begin + seconds * (index + 1) / len(outcome.replicas)
            self._reporter.write(Values(first + index, epoch, moment, values, replica))

    def _evaluate(self, name: str, split: Any) -> None:
        if not len(split):
            return
        self._distribution.settle(self.model)
        if time.monotonic() - self._told >= PHASE_SECONDS or name == "test":
            what = "validation" if name == "val" else "test"
            self._reporter.phase("evaluating", f"On {len(split):,} {what} samples")
        if name not in self._evaluators:
            share = self._spec.training.global_batch // self._distribution.replicas
            self._evaluators[name] = Evaluator(
                self._distribution, self.model, self._objective, split=split, scale=self._data.scale, batch=share
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

    def _narrate(self, what: str) -> None:
        """A line for the log, which people read beside the charts."""
        figures = "".join(f", {name} {value:.4g}" for name, value in self._metrics.items())
        sys.stdout.write(f"{what}, step {self._position.step:,}{figures}\n")
        sys.stdout.flush()

    def _save(self) -> None:
        self._reporter.phase("saving", saving.NAME if self._place.chief else "Waiting for the chief")
        self._distribution.settle(self.model)
        artifact = saving.save_model(self.model, self._place)
        if artifact is not None:
            self._reporter.write(artifact)
        self._narrate("finished")
        if self._place.chief:
            self._reporter.write(
                Finished(
                    time=time.time(), process=self._place.process.name, metrics=self._metrics, step=self._position.step
                )
            )

    def _started(self) -> Started:
        import keras
        import tensorflow as tf

        spec, place = self._spec, self._place
        replicas = tuple(
            ReplicaInfo(
                replica=replica,
                process=process.name,
                device=f"{process.kind}:{process.devices[position // process.split]}",
                gauge="device" if process.kind == "gpu" else "process",
            )
            for process in place.processes
            for position, replica in enumerate(process.replicas)
        )
        return Started(
            time=time.time(),
            process=place.process.name,
            replicas=replicas,
            global_batch=self._samples_per_step,
            per_replica_batch=spec.training.global_batch // place.replicas,
            steps_per_epoch=spec.steps_per_epoch,
            total_steps=spec.total_steps,
            training_samples=len(self._data.training),
            validation_samples=len(self._data.validation),
            test_samples=len(self._data.test),
            parameters=self.model.count_params(),
            peak_learning_rate=spec.peak_learning_rate,
            steps_per_call=self._pace.steps,
            versions={"python": platform.python_version(), "tensorflow": tf.__version__, "keras": keras.__version__},
        )
