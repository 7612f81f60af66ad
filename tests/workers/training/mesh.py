"""What a 2 x 2 mesh does with a model of embedding, attention and dense layers, beside the same model on one device.

Prints JSON: the distance of the weights after some steps, the split axis of each weight, bytes on each device, whether
every slot lies as its weight does, where dropout keeps the same, whether a variable is read as assigned, and what is
said of a model that cannot be split.
"""

import json
from functools import partial

import keras
import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

from tests.workers.training.cases import DENSE, _job
from workers.contract.assignment import Place
from workers.contract.obstacles import kernels
from workers.contract.spec import parse
from workers.training import data, devices
from workers.training.distribution import connect
from workers.training.failures import explain
from workers.training.here import place_here
from workers.training.mesh.boundaries import Ends, ends_of
from workers.training.mesh.layouts import MeshError, check_layers, splits_of
from workers.training.objective import objective_of
from workers.training.optimizers import build_optimizer
from workers.training.steps import Hints

STEPS, BATCH, WORDS = 6, 24, 12
strategy = {"name": "model_parallel", "options": {"mesh": {"batch": 2, "model": 2}, "device_type": "cpu"}}
job = {**_job(DENSE, optimizer={"name": "momentum", "learning_rate": 0.1}), "strategy": strategy}
job["training"] |= {"steps": STEPS, "global_batch": BATCH, "clip": {"global_norm": 0.5}, "shuffle": False}
spec = parse(job)
[process] = place_here(spec)
place = Place(spec=spec, process=process, processes=(process,), run="")
devices.configure(place)
mesh = connect(place)
objective = objective_of(spec)._replace(tokens=True)
random = np.random.default_rng(3)
words = random.integers(0, 32, (STEPS * BATCH, WORDS)).astype(np.int32)
split = data.Split(words, random.integers(0, 10, len(words)).astype(np.int32))


class Rolled(keras.layers.Layer):
    def call(self, values):
        return keras.ops.roll(values, 1, -1)


class Doubled(keras.layers.Dense):
    """Nobody can know what a class of somebody's own does with the weights."""

    def call(self, values):
        return keras.ops.concatenate([super().call(values), super().call(-values)], -1)

    def compute_output_shape(self, shape):
        return (*shape[:-1], 2 * self.units)


def build(dropout=0.0):
    keras.utils.set_random_seed(7)
    entry = keras.Input((WORDS,), dtype="int32")
    hidden = keras.layers.Embedding(32, 16)(entry)
    hidden = hidden + keras.layers.MultiHeadAttention(4, 4)(hidden, hidden)
    hidden = keras.layers.Dense(24, activation="silu")(keras.layers.LayerNormalization()(hidden))
    hidden = keras.layers.GlobalAveragePooling1D()(hidden)
    return keras.Model(entry, keras.layers.Dense(10)(keras.layers.Dropout(dropout)(hidden)))


def meshed():
    with mesh.scope():
        model = build()
    optimizer = mesh.optimizer(model, lambda: build_optimizer(spec))
    steps = mesh.steps(model, optimizer, objective, spec)
    steps.place(split, 1.0)
    steps.begin_epoch(0)
    for first in range(0, STEPS, 3):
        steps.run(first, 3, Hints(), STEPS)
    mesh.settle(model)
    return model, optimizer


def by_hand():
    # Not Adam: the biases of keys have no gradient but rounding, and Adam makes whole steps of that.
    model, optimizer = build(), keras.optimizers.SGD(0.1, momentum=0.9)
    for first in range(0, len(words), BATCH):
        rows = slice(first, first + BATCH)
        with tf.GradientTape() as tape:
            logits = model(words[rows], training=True)
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(split.targets[rows], logits)
        found = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
        # TensorFlow takes the norm of an embedding's rows before it adds up those of one word.
        gradients = tf.clip_by_global_norm(list(map(tf.convert_to_tensor, found)), 0.5)[0]
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return model


def layout(variable):
    return dtensor.fetch_layout(variable.value.read_value()).sharding_specs


def kept_by_dropout():
    """Which of 2 x 512 equal values dropout keeps, by row of the mesh."""
    entry = keras.Input((512,))
    with mesh.scope():
        layer = keras.layers.Dropout(0.5, seed=5)
        model = keras.Model(entry, layer(entry))
    mesh.optimizer(model, lambda: build_optimizer(spec))
    ones = mesh.split_batch(np.ones((2, 512), np.float32))
    state = [variable.value for variable in mesh.statistics]
    call = tf.function(lambda x: model.stateless_call([], [v.read_value() for v in state], x, training=True)[0])
    rows = [part.numpy().ravel() for part in dtensor.unpack(call(ones))]
    return {"rows": bool((rows[0] == rows[2]).all()), "columns": bool((rows[0] == rows[1]).all())}


def evaluated(layer):
    """The loss of a model with `layer` behind its entry, on the mesh and as Keras computes it."""
    features, targets = random.normal(size=(7, 4)).astype(np.float32), np.arange(7, dtype=np.int32)
    with mesh.scope():
        entry = keras.Input((4,))
        model = keras.Model(entry, keras.layers.Dense(10)(layer(entry)))
    wanted = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(targets, model(features))
    mesh.optimizer(model, lambda: build_optimizer(spec))
    rows = data.Split(features, targets)
    try:
        found = mesh.evaluator(model, objective_of(spec), split=rows, scale=1.0, batch=4).run()
    except tf.errors.OpError as error:
        return explain(error, place)[1]
    return [found["loss"], float(wanted)]


def refused(check, *layers):
    """What is said of a model that the mesh cannot split, compute or train."""
    try:
        check(keras.Sequential(layers, name="odd"))
    except MeshError as error:
        return str(error)
    return None


def flipping():
    entry = keras.Input((4,))
    return keras.Model(entry, keras.ops.flip(entry, -1))


def refusals():
    computed, trained = partial(check_layers, training=False), partial(check_layers, training=True)
    pictures = keras.Input((8, 8, 2))
    return {
        "split": refused(lambda model: splits_of(model, 2), keras.Input((5,)), keras.layers.Dense(7)),
        "loop": refused(computed, keras.Input((5, 2)), keras.layers.Bidirectional(keras.layers.GRU(4), name="both")),
        "unrolled": refused(computed, keras.Input((5, 2)), keras.layers.LSTM(4, unroll=True)),
        "dilated": refused(computed, pictures, keras.layers.Conv2D(2, 3, dilation_rate=2, name="wide")),
        "depthwise": refused(trained, pictures, keras.layers.SeparableConv2D(2, 3, name="cheap")),
        "operation": refused(computed, keras.Input((4,)), flipping()),
        "augmentation": refused(trained, pictures, keras.layers.RandomFlip(name="mirror")),
        "augmentation, computed": refused(computed, pictures, keras.layers.RandomFlip()),
        "depthwise, computed": refused(computed, pictures, keras.layers.SeparableConv2D(2, 3, name="cheap")),
    }


def ends(model):
    """Which axis is split in what each kind of layer takes and gives."""
    splits = dict(zip(map(id, model.trainable_variables), splits_of(model, 2), strict=True))
    return {layer.name: tuple(found) for layer, found in ends_of(model, splits) if found != Ends()}


def frozen():
    model = build()
    model.trainable = False
    return model


model, optimizer = meshed()
expected = by_hand()
slots = [variable for variable in optimizer.variables if variable.name.endswith("_momentum")]
value = random.normal(size=mesh.weights[0].shape).astype(np.float32)
mesh.assign_whole(mesh.weights[0], value)
answer = {
    "distance": max(
        float(np.abs(a - b).max()) for a, b in zip(model.get_weights(), expected.get_weights(), strict=True)
    ),
    "axes": {weight.path: layout(kept) for weight, kept in zip(model.trainable_variables, mesh.weights, strict=True)},
    "bytes": mesh.weight_bytes(),
    "whole": 8 * model.count_params(),
    "slots": list(map(layout, slots)) == list(map(layout, mesh.weights)),
    "read": bool((mesh.read_whole(mesh.weights[0]) == value).all()),
    "kernels": {"all": kernels(model), "frozen": kernels(frozen())},
    "replicas": [info.model_dump() for info in mesh.replica_info(place)],
}
others = {
    "constants": evaluated(keras.layers.Normalization(mean=[1, 2, 3, 4], variance=[1, 2, 3, 4])),
    "table": evaluated(lambda entry: entry * keras.ops.convert_to_tensor(random.normal(size=4), "float32")),
    "no layout": evaluated(Rolled()),
    "own class": evaluated(Doubled(6)),
    "dropout": kept_by_dropout(),
    "refused": refusals(),
    "ends": ends(model),
    "frozen": ends(frozen()),
}
print(json.dumps(answer | others), flush=True)
