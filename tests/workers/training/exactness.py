"""Runs every case under the strategies given and compares each with a loop written by hand on one device.

`exactness.py FOLDER PLACES`, JSON with a name and a place for each strategy, all of this process. Prints JSON: for each
of them and each case the greatest distance between the weights, between the losses of the steps, and between the
evaluation and Keras' own. What is found by hand is kept in FOLDER for the processes that come next.
"""

import json
import os
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from tests.workers.training.cases import CASES, cases_of
from workers.contract import catalog
from workers.contract.assignment import Place
from workers.contract.events import parse_event
from workers.contract.spec import parse
from workers.training import data, devices
from workers.training.distribution import connect
from workers.training.loop import Loop
from workers.training.reporter import Reporter

judges = {}


def engine(place, distribution):
    """The model that the engine trained, and the losses and the metrics that it told."""
    file = Path(place.run) / "events" / f"{place.process.name}.jsonl"
    reporter = Reporter(file, place.process.name)
    loop = Loop(place, distribution, data.load(place.spec), reporter)
    loop.build()
    loop.run()
    reporter.close()
    events = [*map(parse_event, file.read_bytes().splitlines())]
    series = [each for event in events if event.type == "points" for each in event.series if each.name == "loss"]
    losses = [value for each in series for value in each.values]
    return loop.model, losses, events[-1].metrics if events[-1].type == "finished" else None


def by_hand(job):
    """The weights and the losses of the same job as people write it, on one device."""
    loaded, training = data.load(job), job.training
    keras.utils.set_random_seed(training.seed)
    build = catalog.find("model", job.model.name).module.build_model
    model = build(job.dataset_info, job.options_of("model"))
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = False
    variables = model.trainable_variables
    optimizer = optimizer_of(training)
    size = training.global_batch * (training.aggregation.micro_batches or 1)
    # Batch normalization sees one global batch at a time; without it, several are the same as one large batch.
    parts = size // training.global_batch if job.model.name == "cnn" else 1

    @tf.function(autograph=False)
    def found(features, targets):
        with tf.GradientTape() as tape:
            losses = losses_of(targets, model(features, training=True), training)
            loss = tf.reduce_sum(losses) / (1 if training.aggregation.method == "sum" else size)
        return tape.gradient(loss, [v.value for v in variables]), tf.reduce_sum(losses) / size

    @tf.function(autograph=False)
    def apply(gradients):
        optimizer.apply_gradients(zip(clipped(gradients, training.clip), variables, strict=True))

    def step(features, targets):
        sums, mean = [tf.zeros(variable.shape) for variable in variables], 0.0
        for some, wanted in zip(tf.split(features, parts), tf.split(targets, parts), strict=True):
            gradients, part = found(some, wanted)
            sums, mean = [a + b for a, b in zip(sums, gradients, strict=True)], mean + part
        apply(sums)
        return mean

    losses, per_epoch = [], len(loaded.training) // size
    for number in range(training.steps):
        epoch, place = divmod(number, per_epoch)
        order = np.random.default_rng((training.seed, epoch)).permutation(len(loaded.training))
        rows = order[place * size : (place + 1) * size]
        losses.append(
            float(step(tf.constant(loaded.training.features[rows]), tf.constant(loaded.training.targets[rows])))
        )
    return [*model.get_weights(), np.array(losses)]


def losses_of(wanted, logits, training):
    """Of each example; of a language model's, the mean over its tokens."""
    smooth = tf.one_hot(wanted, logits.shape[-1])
    losses = keras.losses.categorical_crossentropy(smooth, logits, True, training.label_smoothing)
    for index, weight in (training.class_weights or {}).items():
        losses = tf.where(wanted == index, losses * weight, losses)
    return tf.reduce_mean(tf.reshape(losses, [losses.shape[0], -1]), 1)


def optimizer_of(training):
    chosen = training.optimizer
    if training.schedule.kind == "cosine":
        return keras.optimizers.SGD(
            keras.optimizers.schedules.CosineDecay(chosen.learning_rate, training.steps - 1, training.schedule.final)
        )
    if chosen.name == "adam":
        return keras.optimizers.Adam(chosen.learning_rate)
    return keras.optimizers.SGD(chosen.learning_rate, momentum=getattr(chosen, "momentum", 0.0))


def clipped(gradients, clip):
    if clip is None:
        return gradients
    if clip.value is not None:
        return [tf.clip_by_value(gradient, -clip.value, clip.value) for gradient in gradients]
    if clip.norm is not None:
        return [tf.clip_by_norm(gradient, clip.norm) for gradient in gradients]
    return tf.clip_by_global_norm(gradients, clip.global_norm)[0]


def kept(job, file):
    """As `by_hand`, by whichever process came first."""
    if not file.exists():
        whole = file.with_suffix(f".{os.getpid()}")
        with whole.open("wb") as out:
            np.savez(out, *by_hand(job))
        whole.rename(file)
    with np.load(file) as arrays:
        *weights, losses = [arrays[name] for name in arrays]
    return weights, losses


def judge_of(job, file):
    """A model that Keras evaluates, made once for each case."""
    if file not in judges:
        build = catalog.find("model", job.model.name).module.build_model
        judges[file] = build(job.dataset_info, job.options_of("model"))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        judges[file].compile(loss=loss, metrics=["accuracy"])
    return judges[file]


def compared(trained, job, file):
    """What `engine` gave beside what is found by hand; a process that is no chief's tells weights alone, one that went
    on from a checkpoint the losses of the last steps.
    """
    model, told, metrics = trained
    expected, losses = kept(job, file)
    weights = [np.asarray(weight) for weight in model.weights]
    answer = {"weights": max(float(np.abs(a - b).max()) for a, b in zip(weights, expected, strict=True))}
    if metrics is not None:
        answer["losses"] = float(np.abs(losses[-len(told) :] - told).max())
        held, judge = data.load(job).validation, judge_of(job, file)
        # Of the engine's own weights, so that this measures the evaluation alone.
        judge.set_weights(weights)
        found = judge.evaluate(held.features, held.targets, verbose=0, return_dict=True)
        answer["evaluation"] = max(abs(metrics[f"val_{name}"] - value) for name, value in found.items())
    return answer


if __name__ == "__main__":
    answers = {}
    places = {name: Place.model_validate(each) for name, each in json.loads(sys.argv[2]).items()}
    devices.configure(max(places.values(), key=lambda place: len(place.process.devices)))
    for title, place in places.items():
        distribution = connect(place)
        for name in cases_of(title):
            job = parse({**CASES[name], "strategy": place.spec.strategy.model_dump()})
            run = Path(place.run) / title / name
            run.mkdir(parents=True, exist_ok=True)
            trained = engine(place.model_copy(update={"spec": job, "run": str(run)}), distribution)
            answers[f"{title}, {name}"] = compared(trained, job, Path(sys.argv[1]) / f"{name}.npz")
        distribution.meet()
    print(json.dumps(answers), flush=True)
