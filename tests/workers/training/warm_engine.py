"""An engine process that stays: `warm_engine.py PLACE` runs a share of one job for each line on its standard input.

A line is JSON: {"place"} runs a job, {"saved_model", "keras", "features"} compares two exports, {"evaluate", "spec",
"split"} lets Keras evaluate a file. The answer is one line of JSON on standard output: {} or {"error"} for a job,
{"distance"} for exports, {"loss", "accuracy", "probabilities", "targets"} for an evaluation.
"""

import json
import sys
import tempfile
import zipfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from workers.contract.assignment import Place
from workers.contract.spec import parse
from workers.training import data, devices, shares
from workers.training.distribution import connect
from workers.training.reporter import Reporter

answers = sys.stdout
sys.stdout = sys.stderr
first = Place.model_validate_json(sys.argv[1])
devices.configure(first)
spreads = {}


def train(place):
    key = json.dumps(place.spec.strategy.model_dump())
    if key not in spreads:
        spreads[key] = connect(place)
    reporter = Reporter(Path(place.run) / "events" / f"{place.process.name}.jsonl", place.process.name)
    share = shares.share_of(place, spreads[key], shares.load(place), reporter)
    try:
        share.build()
        share.run()
    finally:
        reporter.close()
    return {}


def compare(asked):
    """The greatest distance between the outputs of two exports of a model."""
    features = tf.constant(asked["features"], tf.float32)
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(asked["saved_model"]).extractall(folder)
        served = tf.saved_model.load(folder)
        by_name = served.signatures["serving_default"](features=features)
        [named] = by_name.values()
        outputs = served.serve(features)
    expected = keras.models.load_model(asked["keras"], compile=False)(features)
    return {"distance": max(float(np.abs(each - expected).max()) for each in (outputs, named))}


def evaluate(asked):
    """Classification of one split, by Keras alone and in float32."""
    loaded = data.load(parse(asked["spec"]))
    split = getattr(loaded, asked["split"])
    model = keras.models.load_model(asked["evaluate"], compile=False)
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    features = split.features.astype("float32") * np.float32(loaded.scale)
    found = model.evaluate(features, split.targets, verbose=0, return_dict=True)
    probabilities = tf.nn.softmax(model.predict(features, verbose=0)).numpy()
    return {**found, "probabilities": probabilities.tolist(), "targets": split.targets.tolist()}


def answer(asked):
    if "evaluate" in asked:
        return evaluate(asked)
    if "saved_model" in asked:
        return compare(asked)
    try:
        return train(Place.model_validate(asked["place"]))
    except Exception as error:  # noqa: BLE001  the test sees it
        return {"error": str(error)}


for line in sys.stdin:
    answers.write(json.dumps(answer(json.loads(line))) + "\n")
    answers.flush()
