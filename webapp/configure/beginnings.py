"""What stands in the form when a link leads to it: a checkpoint to go on from or to use, or data with what fits."""

from __future__ import annotations

from collections.abc import Container

from webapp.configure.forms import PREFERRED, Typed, choice, dataset_info, offered, training_fields
from workers.contract import catalog
from workers.contract.catalog import Kind
from workers.contract.problems import SpecInvalid

FEWEST_STEPS = 4
"""Of an epoch, where the batch is not anybody's choice."""


def going_on(job: int, checkpoint: str) -> dict[str, str]:
    """What is typed to go on from a checkpoint of an earlier job."""
    return {"resume.job": str(job), "resume.checkpoint": checkpoint[:100]}


def put_to_use(typed: Typed, kind: str) -> dict[str, str]:
    """What is typed to do something else with the weights of the job that `typed` is of than to train on."""
    return {"kind": kind, "name": f"{kind} {typed.get('name', '')}".strip()[:120]}


def fitted(data: Typed, chosen: Container[str]) -> dict[str, str]:
    """What is typed, with a model that fits the data, or data that fit the model, and a batch that the data fill.

    `chosen` holds the names of the fields that somebody decided; they stay as they are.
    """
    typed = dict(data)
    others: tuple[tuple[Kind, Kind], ...] = (("dataset", "model"), ("model", "dataset"))
    for mine, other in others:
        if f"{mine}.name" in chosen and f"{other}.name" not in chosen:
            fitting = (
                name for name in (PREFERRED[other], *offered(other)) if _go_together(typed | {f"{other}.name": name})
            )
            typed[f"{other}.name"] = next(fitting, typed[f"{other}.name"])
    info = dataset_info(typed)
    if info is not None:
        samples = info.training_samples(float(training_fields()["validation_split"].default))
        batch = int(training_fields()["global_batch"].default)
        while batch > 2 and batch * FEWEST_STEPS > samples:
            batch //= 2
        typed["training.global_batch"] = str(batch)
    return typed


def _go_together(data: Typed) -> bool:
    """Whether model and data fit, under the options that are typed."""
    info, chosen = dataset_info(data), choice("model", data)
    entry = catalog.entries("model").get(chosen["name"])
    if info is None or entry is None:
        return False
    try:
        return not hasattr(entry.module, "check") or not entry.module.check(entry.parse(chosen["options"]), info)
    except SpecInvalid:
        return False
