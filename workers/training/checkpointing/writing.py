"""Writes checkpoints beside the training, one at a time, and removes those that newer ones replace.

Promises: what has no dot before its name is whole; an error of the disk ends neither the training nor the thread, is
told, and leaves nothing behind; `wait` returns when the last one is on the disk or has failed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.contract.events import CheckpointDropped, CheckpointSaved
from workers.training.checkpointing import checkpoints
from workers.training.checkpointing.checkpoints import MANIFEST, Manifest
from workers.training.reporter import Reporter

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTICED_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A training state off the devices, and what its checkpoint is to say. `best`: the best of its job so far."""

    manifest: Manifest
    arrays: dict[str, NDArray[Any]]
    best: bool = False


class CheckpointWriter:
    """The chief's. A snapshot that comes while one is being written waits until that is done."""

    def __init__(self, folder: Path, reporter: Reporter, keep: int) -> None:
        self._folder, self._reporter, self._keep = folder, reporter, keep
        self._thread: threading.Thread | None = None
        checkpoints.sweep(folder)
        self._kept = [path.name for path in reversed(checkpoints.among(folder))]
        self.best: str | None = None
        """The name of the one that stays besides the newest."""
        self.failed: str | None = None
        """Why the last one could not be written."""

    def put(self, snapshot: Snapshot) -> None:
        """Begin to write it."""
        began = time.monotonic()
        self.wait()
        waited = time.monotonic() - began
        if waited > NOTICED_SECONDS:
            _note(f"{snapshot.manifest.name} waited {waited:.1f} s for the checkpoint before it to be written")
        self._thread = threading.Thread(target=self._write, args=(snapshot,), name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Return when nothing is being written."""
        if self._thread is not None:
            self._thread.join()

    def _write(self, snapshot: Snapshot) -> None:
        name = snapshot.manifest.name
        began = time.monotonic()
        try:
            manifest = checkpoints.write(self._folder, snapshot.manifest, snapshot.arrays)
            self._tell(manifest, snapshot.best, time.monotonic() - began)
            self._retain(name, best=snapshot.best)
        except Exception as error:  # noqa: BLE001  whatever it is, training must not end with it, nor go on unaware
            self.failed = getattr(error, "strerror", None) or str(error) or type(error).__name__
            text = f"{name} could not be written ({self.failed}); training goes on without it"
            _note(text)
            self._reporter.phase("training", text)
        else:
            self.failed = None

    def _tell(self, manifest: Manifest, best: bool, seconds: float) -> None:
        path = self._folder / manifest.name
        said = (path / MANIFEST).read_bytes()
        size = len(said) + sum(info.bytes for info in manifest.files.values())
        _note(f"checkpoint {manifest.name} saved in {seconds:.2f} s, {size:,} bytes")
        self._reporter.write(
            CheckpointSaved(
                time=time.time(),
                process=self._reporter.process,
                name=manifest.name,
                path=str(path),
                step=manifest.step,
                samples_seen=manifest.samples_seen,
                bytes=size,
                sha256=hashlib.sha256(said).hexdigest(),
                seconds=seconds,
                metrics=manifest.metrics,
                best=best,
            )
        )

    def _retain(self, name: str, *, best: bool) -> None:
        self._kept = [*(other for other in self._kept if other != name), name]
        if best:
            self.best = name
        for old in self._kept[: -self._keep]:
            if old != self.best:
                self._kept.remove(old)
                shutil.rmtree(self._folder / old, ignore_errors=True)
                self._reporter.write(CheckpointDropped(time=time.time(), process=self._reporter.process, name=old))


def _note(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
