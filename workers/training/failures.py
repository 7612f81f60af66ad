"""Turns what went wrong into one sentence for people, and what to do."""

from __future__ import annotations

import errno
import math
import re
import traceback
from typing import Literal

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.training.arrays import DataError
from workers.training.checkpointing.checkpoints import CheckpointError
from workers.training.checkpointing.initial_model import ModelFileError
from workers.training.collective_watch import WaitedTooLong
from workers.training.devices import DeviceError
from workers.training.servers.roll_call import PeerLost

Reason = Literal["data", "memory", "nan", "peer", "network", "device", "error"]
PREAMBLE = (
    "Graph execution error", "Detected at node", "Detected Unsupported", "Stack trace", "File ", "[[", "(0) ",
    "Exception encountered when calling",
)  # fmt: skip
BOLD = re.compile(r"\x1b\[\d*m")
LONGEST = 400
LONGEST_TRACEBACK = 20_000
PEER_ERRORS = {"UnavailableError", "AbortedError", "CancelledError", "DeadlineExceededError"}


class NotFiniteError(Exception):
    """The loss became NaN or infinite and the spec says to stop then."""

    def __init__(self, step: int, value: float) -> None:
        what = "NaN" if math.isnan(value) else "infinite"
        super().__init__(
            f"The loss became {what} at step {step:,}; lower the learning rate, add warm-up steps or check the data."
        )
        self.step = step


OURS: dict[type[Exception], Reason] = {
    NotFiniteError: "nan",
    DataError: "data",
    ModelFileError: "data",
    CheckpointError: "data",
    DeviceError: "device",
    PeerLost: "peer",
    WaitedTooLong: "peer",
}


def explain(error: BaseException, place: Place) -> tuple[Reason, str]:
    """Reason and cause of a failure of this process."""
    for known, reason in OURS.items():
        if isinstance(error, known):
            return reason, str(error)
    kind, text = type(error).__name__, _first_line(error)
    if isinstance(error, MemoryError) or kind == "ResourceExhaustedError":
        return "memory", _out_of_memory(error, place)
    if isinstance(error, OSError) and kind not in PEER_ERRORS:
        return "error", _file_trouble(error, text, place)
    if len(place.processes) > 1 and (kind in PEER_ERRORS or "collective" in text.lower()):
        return "peer", f"{place.process.name} lost contact with {_lost(str(error))} ({text})."
    if "NCCL" in text or "CUDA" in text or "cuDNN" in text:
        return "device", f"The device of {place.process.name} failed ({text})."
    return "error", _by_its_words(error, text, place)


def traceback_of(error: BaseException) -> str:
    """As Python prints it, its end when it is very long; nothing when the cause says it all."""
    if isinstance(error, tuple(OURS)):
        return ""
    return "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]


def _file_trouble(error: OSError, text: str, place: Place) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"{place.process.name} found no space left on the disk of {place.run}: free some, or set LOCKSTEP_RUNS."
    return f"{place.process.name} could not use a file: {text}"


def _by_its_words(error: BaseException, text: str, place: Place) -> str:
    if "Could not start gRPC server" in text:
        return _port_taken(place)
    on_mesh = getattr(catalog.find("strategy", place.spec.strategy.name).module, "on_mesh", False)
    if on_mesh and "dtensor" in str(error).lower():
        return _not_on_a_mesh(str(error), text, place)
    return f"{type(error).__name__}: {text}"


def _port_taken(place: Place) -> str:
    return (
        f"{place.process.name} could not listen on port {place.process.port}: another program of the host has it; "
        "submit the job again, or give the host other ports with LOCKSTEP_PORT_RANGE."
    )


def _not_on_a_mesh(whole: str, text: str, place: Place) -> str:
    """What of a model cannot be known before it is compiled: any operation may be in it."""
    found = re.search(r"'tf\.(\w+)' op does not implement layout propagation", whole)
    what = f"the operation {found[1]}, for which DTensor has no layout" if found else f"the model ({text})"
    return f"A mesh cannot compute {what}: use mirrored or multi_worker_mirrored instead of {place.spec.strategy.name}."


def _lost(text: str) -> str:
    """The process that TensorFlow found silent, where it says which."""
    found = re.search(r"unhealthy.*?/job:(\w+)/(?:replica:\d+/)?task:(\d+)", text, re.DOTALL)
    return f"{found[1]}-{found[2]}, which had stopped answering" if found else "another process of the job"


def _out_of_memory(error: BaseException, place: Place) -> str:
    found = re.search(r"(GPU|CPU|TPU):\d+", str(error))
    own = [f"{place.process.kind}:{index}" for index in place.process.devices]
    where = found.group(0) if found else next(iter(own), "the host")
    batch = place.spec.training.global_batch
    share = batch // max(1, place.replicas)
    return (
        f"Out of memory on {where} of {place.process.name} with {share:,} samples per replica; "
        f"use a global batch smaller than {batch:,}, more replicas or a smaller model."
    )


def _first_line(error: BaseException) -> str:
    """What is said first, past the Python lines and node names that TensorFlow puts before it."""
    lines = [BOLD.sub("", line).strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(PREAMBLE)]
    text = said[0].removesuffix(".") if said else "no message"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
