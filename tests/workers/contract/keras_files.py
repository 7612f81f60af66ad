"""Writes `.keras` files as Keras does, and as somebody would who means harm, without TensorFlow."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

PLAIN: dict[str, Any] = {"registered_name": None}
POLICY = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, **PLAIN}


def layer(name: str, config: dict[str, Any] | None = None, module: str = "keras.layers", **more: Any) -> dict[str, Any]:
    return {"module": module, "class_name": name, "config": config or {}, **PLAIN, **more}


def entry(*shape: int) -> dict[str, Any]:
    return layer("InputLayer", {"batch_shape": [None, *shape], "dtype": "float32", "name": "entry"})


def dense(units: int, width: int, **more: Any) -> dict[str, Any]:
    config = {"name": f"dense_{units}", "dtype": POLICY, "units": units, "activation": "linear", **more}
    return layer("Dense", config, build_config={"input_shape": [None, width]})


def sequential(*layers: dict[str, Any]) -> dict[str, Any]:
    return layer("Sequential", {"name": "sequential", "layers": list(layers)}, module="keras")


def weights(width: int = 4, units: int = 3) -> bytes:
    """HDF5 as Keras lays it out: kernel and bias of one dense layer."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        group = file.create_group("layers/dense/vars")
        group["0"] = np.ones((width, units), "float32")
        group["1"] = np.zeros(units, "float32")
    return buffer.getvalue()


def write(path: Path, config: object = None, h5: bytes | None = None, **more: bytes) -> Path:
    """A file of one dense layer, or of what is given; `more` are further members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        given = sequential(entry(4), dense(3, 4)) if config is None else config
        archive.writestr("config.json", given if isinstance(given, bytes) else json.dumps(given))
        archive.writestr("model.weights.h5", weights() if h5 is None else h5)
        for name, content in more.items():
            archive.writestr(name, content)
    return path
