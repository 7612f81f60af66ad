"""Writes the trained model: every process takes part, the chief's copy is the one that stays."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from workers.contract.assignment import Place
from workers.contract.events import Artifact

NAME = "model.keras"


def save_model(model: Any, place: Place) -> Artifact | None:
    """`RUN/model.keras`, whole or not at all; None for a process that is not the chief, which saves into thin air."""
    if not place.chief:
        with tempfile.TemporaryDirectory(prefix="lockstep-save-") as folder:
            model.save(Path(folder) / NAME)
        return None
    final = Path(place.run) / NAME
    # Keras wants the ending, so the temporary name differs at its beginning.
    unfinished = final.with_name(f".unfinished-{os.getpid()}-{NAME}")
    try:
        model.save(unfinished)
        with unfinished.open("rb+") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            os.fsync(stream.fileno())
        os.replace(unfinished, final)
    finally:
        unfinished.unlink(missing_ok=True)
    return Artifact(
        time=time.time(),
        process=place.process.name,
        name=NAME,
        path=str(final),
        bytes=final.stat().st_size,
        sha256=digest,
    )
