"""How fast the loop is on tiny steps, beside Keras and loops written by hand: `python -m tests.bench.training`.

An mlp of 64-256-128-10 on batches of 64 out of 25,600, RMSprop, one CPU device; steps per second, the best of several
rounds taken by turns, so that a busy machine slows all of them alike. `--twins` runs only those on
data that lies on the device: the engine must keep 0.98 of the speed of the loop by hand.
"""

import argparse
import importlib.util
import json
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from workers.contract.assignment import Place
from workers.contract.spec import parse
from workers.training import data
from workers.training.distribution import connect
from workers.training.here import place_here
from workers.training.loop import Loop
from workers.training.reporter import Reporter

STEPS, BATCH, CALL = 4000, 64, 20


def job(steps_per_call):
    return parse(
        {
            "name": "bench",
            "dataset": {"name": "synthetic_images", "options": {"shape": [8, 8, 1], "samples": 25_600}},
            "model": {"name": "mlp", "options": {"units": [256, 128], "dropout": [0, 0]}},
            "strategy": {"name": "one_device", "options": {"device": "cpu"}},
            "training": {
                "steps": STEPS,
                "global_batch": BATCH,
                "optimizer": {"name": "rmsprop"},
                "validation_split": 0,
                "steps_per_call": steps_per_call,
            },
        }
    )


LOADED = data.load(job("auto"))
TRAINING = data.Split(LOADED.training.features.astype(np.float32) * np.float32(LOADED.scale), LOADED.training.targets)


def network():
    keras.utils.set_random_seed(1)
    layers = [keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(256, "relu")]
    return keras.Sequential([*layers, keras.layers.Dense(128, "relu"), keras.layers.Dense(10)])


def pipeline():
    rows = tf.data.Dataset.from_tensor_slices((TRAINING.features, TRAINING.targets))
    return rows.shuffle(len(TRAINING), seed=1).repeat().batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def keras_fit(callbacks=(), call=CALL):
    model = network()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.RMSprop(), loss, metrics=["accuracy"], steps_per_execution=call)
    rows = pipeline()
    model.fit(rows, steps_per_epoch=call * 2, verbose=0)
    began = time.perf_counter()
    model.fit(rows, steps_per_epoch=STEPS, verbose=0, callbacks=list(callbacks))
    return STEPS / (time.perf_counter() - began)


def keras_fit_with_tensorboard():
    """A point per step, which is what the engine tells: TensorBoard writes per batch, so one step per call."""
    folder = tempfile.mkdtemp(prefix="bench-tb-")
    return keras_fit([keras.callbacks.TensorBoard(folder, update_freq=1)], call=1)


def by_hand(take):
    """A bare loop of CALL steps per device call whose batches `take` gives; nothing is reported."""
    model, optimizer = network(), keras.optimizers.RMSprop()
    optimizer.build(model.trainable_variables)
    weights = model.trainable_variables

    def step(features, targets):
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
            loss = tf.reduce_sum(losses) / BATCH
        optimizer.apply(tape.gradient(loss, weights), weights)
        right = tf.equal(tf.argmax(logits, -1, output_type=tf.int32), targets)
        return tf.stack([loss, tf.reduce_sum(tf.cast(right, tf.float32))])

    call = take(step)
    call()
    began = time.perf_counter()
    for _ in range(STEPS // CALL):
        call().numpy()
    return STEPS / (time.perf_counter() - began)


def naive(step):
    rows = iter(pipeline())

    @tf.function
    def call():
        total = tf.zeros([2])
        for _ in tf.range(CALL):
            total += step(*next(rows))
        return total

    return call


def gathered(step):
    """The best that is known: data and order on the device, as the engine has them."""
    features, targets = tf.constant(TRAINING.features), tf.constant(TRAINING.targets)
    order = tf.constant(data.epoch_order(len(TRAINING), seed=1, epoch=0, shuffle=True)[: CALL * BATCH])

    @tf.function
    def walk(rows):
        total = tf.TensorArray(tf.float32, CALL)
        for index in tf.range(CALL):
            total = total.write(index, step(tf.gather(features, rows[index]), tf.gather(targets, rows[index])))
        return total.stack()

    return lambda: walk(tf.reshape(order, [CALL, BATCH]))


def lockstep(steps_per_call):
    """The engine's own loop with its reporter and gauges; from its events, without its first half second."""
    spec = job(steps_per_call)
    [process] = place_here(spec)
    run = Path(tempfile.mkdtemp(prefix="bench-loop-"))
    place = Place(spec=spec, process=process, processes=(process,), run=str(run))
    reporter = Reporter(run / "events" / "worker-0.jsonl", "worker-0")
    loop = Loop(place, connect(place), data.load(spec), reporter)
    loop.build()
    loop.run()
    reporter.close()
    times = []
    for line in (run / "events" / "worker-0.jsonl").read_text().splitlines():
        event = json.loads(line)
        for series in event.get("series", ()):
            if series["name"] == "loss":
                times += series["times"]
    assert len(times) == STEPS
    first = next(index for index, moment in enumerate(times) if moment > times[0] + 0.5)
    return (STEPS - 1 - first) / (times[-1] - times[first])


RUNS = {
    "keras fit, 20 steps a call": keras_fit,
    "keras fit + TensorBoard, a point a step": keras_fit_with_tensorboard,
    "by hand, tf.data, 20 steps a call": lambda: by_hand(naive),
    "by hand, data on the device, 20 steps a call": lambda: by_hand(gathered),
    "lockstep, 20 steps a call": lambda: lockstep(20),
    "lockstep, auto": lambda: lockstep("auto"),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--twins", action="store_true")
    chosen = parser.parse_args()
    if importlib.util.find_spec("tensorboard") is None:
        print("tensorboard is not installed: its row is left out")
        del RUNS["keras fit + TensorBoard, a point a step"]
    wanted = {name: run for name, run in RUNS.items() if not chosen.twins or "device" in name or "auto" in name}
    best = dict.fromkeys(wanted, 0.0)
    for _ in range(chosen.rounds):
        for name, run in wanted.items():
            best[name] = max(best[name], run())
    for name, speed in best.items():
        print(f"{speed:8.0f} steps/s  {name}")
