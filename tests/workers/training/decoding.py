"""Loads small files of examples and pictures as the engine does: `decoding.py FOLDER`. Prints JSON by case."""

import json
import sys
from pathlib import Path

import numpy as np

from workers.contract import catalog
from workers.contract.problems import SpecInvalid
from workers.training.arrays import DataError

HOME = Path(sys.argv[1])


def loaded(name, file, **options):
    entry = catalog.find("dataset", name)
    path = HOME / file
    try:
        facts = entry.module.inspect(path, None)
        chosen = entry.parse({**options, "file": str(path), "facts": facts.model_dump(mode="json")})
        info = entry.module.describe(chosen)
        arrays = entry.module.load(chosen, HOME)
    except (SpecInvalid, DataError) as error:
        return {"error": str(error)}
    assert arrays.features.shape[1:] == info.shape
    return {
        "shape": list(arrays.features.shape),
        "first": arrays.features[0].ravel().tolist(),
        "sum": float(np.sum(arrays.features, dtype=np.float64)),
        "targets": arrays.targets.tolist(),
    }


def mapped(file="a.tfrecord", target="label", **features):
    return loaded("tfrecord", file, target=target, features=features)


NUMBER = {"type": "number"}
print(
    json.dumps(
        {
            "folder": loaded("image_folder", "pictures"),
            "zip": loaded("image_folder", "pictures.zip"),
            "grey and small": loaded("image_folder", "pictures", height=4, width=6, channels="grey"),
            "torn pictures": loaded("image_folder", "torn"),
            "numbers": mapped(x=NUMBER, y=NUMBER),
            "raw": mapped(raw={"type": "bytes", "shape": [2, 2, 3]}),
            "image": mapped(image={"type": "image"}),
            "regression": mapped(target="y", x=NUMBER),
            "unmapped bytes": loaded("tfrecord", "a.tfrecord"),
            "two kinds": mapped(x=NUMBER, image={"type": "image"}),
            "wrong shape": mapped(x={"type": "number", "shape": [3]}),
            "unknown": mapped(price=NUMBER),
            "torn": mapped(file="torn.tfrecord", x=NUMBER),
        }
    )
)
