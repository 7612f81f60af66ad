"""Writes the trained model as the spec asks: every process takes part, the chief's copy is the one that stays."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.contract.events import Artifact
from workers.contract.keeping import Export
from workers.training.reporter import Reporter

NAMES: dict[Export, str] = {"keras": "model.keras", "saved_model": "saved_model.zip"}


def save_all(model: Any, place: Place, reporter: Reporter) -> None:
    """Every format of the spec, told; called by every process. The model's variables are up to date. Raises OSError."""
    names = ", ".join(NAMES[form] for form in place.spec.export)
    reporter.phase("saving", names if place.chief else "Waiting for the chief")
    for form in dict.fromkeys(place.spec.export):
        artifact = save_model(model, form, place)
        if artifact is not None:
            reporter.write(artifact)


def save_model(model: Any, form: Export, place: Place) -> Artifact | None:
    """`RUN/model.keras` or `RUN/saved_model.zip`, whole or not at all; None for a process that is not the chief.

    Both take features as the model does, scaled. Raises OSError.
    """
    if form == "keras":
        return keep(NAMES[form], model.save, place)
    if not place.chief:
        return None
    values = [weight.numpy() for weight in model.weights]
    return keep(NAMES[form], lambda file: _export(file, values, place), place)


def keep(name: str, write: Callable[[Path], Any], place: Place) -> Artifact | None:
    """What `write` writes as `RUN/name`, whole or not at all; of other processes than the chief it is thrown away."""
    if not place.chief:
        with tempfile.TemporaryDirectory(prefix="lockstep-save-") as folder:
            write(Path(folder) / name)
        return None
    final = Path(place.run) / name
    # Keras wants the ending, so the temporary name differs at its beginning.
    unfinished = final.with_name(f".unfinished-{os.getpid()}-{name}")
    try:
        write(unfinished)
        with unfinished.open("rb+") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            os.fsync(stream.fileno())
        os.replace(unfinished, final)
    finally:
        unfinished.unlink(missing_ok=True)
    return Artifact(
        time=time.time(),
        process=place.process.name,
        name=name,
        path=str(final),
        bytes=final.stat().st_size,
        sha256=digest,
    )


def _export(file: Path, values: list[Any], place: Place) -> None:
    """A SavedModel, zipped, with one endpoint `serve` (`serving_default`): float32 features to the model's outputs.

    Of a model of its own that no strategy knows, since an exported graph must not ask for other processes.
    """
    import tensorflow as tf

    spec, info = place.spec, place.spec.dataset_info
    module = catalog.find("model", spec.model.name).module
    model = module.build_model(info, spec.options_of("model"))
    for weight, value in zip(model.weights, values, strict=True):
        weight.assign(value)
    folder = file.with_suffix(".folder")
    signature = [tf.TensorSpec((None, *info.shape), tf.float32, name="features")]
    try:
        model.export(folder, format="tf_saved_model", verbose=False, input_signature=signature)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, path.relative_to(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
