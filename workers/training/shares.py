"""Which code does a process's share of a job, by the job's kind."""

from __future__ import annotations

from workers.contract.assignment import Place
from workers.contract.kinds import JobKind
from workers.training import data
from workers.training.distribution import Distribution
from workers.training.inference.jobs import Evaluation, Exporting, Inference, Prediction
from workers.training.loop import Loop
from workers.training.reporter import Reporter

KINDS: dict[JobKind, type[Loop | Inference]] = {
    "train": Loop,
    "evaluate": Evaluation,
    "predict": Prediction,
    "export": Exporting,
}


def load(place: Place) -> data.Data:
    """The data that the job needs. Raises DataError."""
    return data.nothing(place.spec) if place.spec.kind == "export" else data.load(place.spec)


def share_of(place: Place, distribution: Distribution, loaded: data.Data, reporter: Reporter) -> Loop | Inference:
    """What to build and run in this process."""
    return KINDS[place.spec.kind](place, distribution, loaded, reporter)
