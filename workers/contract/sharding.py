"""Whether data can be dealt out to workers as a spec asks.

In the words of tf.data's AutoShardPolicy: `data` is DATA, `file` is FILE, `off` is OFF. `auto` is `data`, never FILE,
so that a job sees the same global batches however many workers it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.contract.problems import Problem

if TYPE_CHECKING:
    from workers.contract.spec import JobSpec


def sharding_problems(spec: JobSpec) -> list[Problem]:
    """Paths as in the spec."""
    sharding, layout, files = spec.training.sharding, spec.layout, spec.dataset_info.files
    workers = sum(process.computes for process in layout.processes)
    path = "training.sharding"
    if layout.asynchronous and sharding in {"file", "off"}:
        message = "is for workers that step together, and these are dealt their steps one by one"
        return [Problem(path, message, sharding, "Use auto, or another strategy")]
    if sharding == "file" and files is None:
        message = f"deals out files, and {spec.dataset.name} is held in memory whole"
        return [Problem(path, message, sharding, "Use data or off")]
    if sharding == "file" and files is not None and files < workers:
        message = f"gives each of {workers} workers files of its own, and there {_are(files)}"
        return [Problem(path, message, sharding, f"Use data, ask for {files} workers, or split the data further")]
    # The chief of asynchronous workers reads alone.
    several = workers > 1 and not layout.asynchronous
    if not spec.training.deterministic and files is not None and several and sharding in {"auto", "data"}:
        message = f"would let {workers} workers disagree on the order that they share"
        return [Problem("training.deterministic", message, False, "Use true, or sharding file or off")]
    return []


def _are(files: int) -> str:
    return "is 1 file" if files == 1 else f"are {files} files"
