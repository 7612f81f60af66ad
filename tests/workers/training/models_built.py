"""Builds models and takes their measure, one process for all: prints JSON, a list of faults for each claim."""

import json
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from tests.workers.training.conftest import seed_with
from workers.contract import catalog, obstacles
from workers.contract.data import DatasetInfo
from workers.contract.spec import parse
from workers.training.objective import Objective, balanced, objective_of
from workers.training.optimizers import build_optimizer, learning_rate_at
from workers.training.steps import _gradients_of

ROW = DatasetInfo(shape=(30,), classes=2, samples=10)
SMALL, ODD = (DatasetInfo(shape=shape, classes=7, samples=10) for shape in ((8, 8, 1), (40, 33, 3)))
EVEN = DatasetInfo(shape=(28, 12, 3), classes=10, samples=10)
TEXT = DatasetInfo(shape=(12,), classes=3, tokens=50, samples=10)
LANGUAGE = DatasetInfo(task="language_model", shape=(12,), tokens=50, samples=10)
CLICKS = DatasetInfo(shape=(5,), classes=2, categories=(70_000, 7, 3), samples=10)
IDS = DatasetInfo(shape=(1,), classes=2, categories=(100,), samples=10)

MODELS = [
    ("linear", ROW, {}),
    ("mlp", SMALL, {}),
    ("cnn", EVEN, {"batch_norm": True}),
    ("efficientnet", SMALL, {}),
    ("mobilenet", ODD, {"dropout": 0}),
    ("autoencoder", SMALL, {}),
    ("autoencoder", ROW, {"units": [], "code": 3}),
    ("autoencoder", EVEN, {"kind": "convolution", "filters": [4, 8]}),
    ("gan", SMALL, {}),
    ("gan", ROW, {"units": [5], "noise": 3, "output": "linear"}),
    ("text_classifier", TEXT, {}),
    ("text_classifier", TEXT, {"encoder": "mean", "width": 6}),
    ("text_classifier", TEXT, {"encoder": "transformer", "width": 8, "heads": 2}),
    ("transformer_lm", LANGUAGE, {"layers": 3, "width": 12, "heads": 3}),
    ("wide_and_deep", CLICKS, {}),
    ("wide_and_deep", IDS, {"units": [4], "dropout": 0.5}),
    ("resnet", SMALL, {"width": 4}),
    ("resnet", ODD, {"width": 4, "batch_norm": False, "activation": "silu", "dropout": 0.2}),
    ("resnet", DatasetInfo(shape=(64, 64, 3), classes=10, samples=1), {"width": 4, "depth": 50}),
    ("resnet", ODD, {"width": 3, "depth": 50, "stem": "small", "batch_norm": False}),
    ("resnet", ODD, {"width": 2, "stem": "imagenet"}),
]


def built(name, info, options):
    entry = catalog.find("model", name)
    return entry.module.build_model(info, entry.parse(options))


def counts():
    for name, info, options in MODELS:
        entry = catalog.find("model", name)
        told = entry.module.count_parameters(info, entry.parse(options))
        found = built(name, info, options).count_params()
        if told != found:
            yield f"{name} {options}: told {told}, found {found}"


def kernels():
    """What a mesh is told beforehand lets those columns pass that divide the built model's weights, and no others."""
    for name, info, options in MODELS:
        entry = catalog.find("model", name)
        if name == "gan":  # Never on a mesh.
            continue
        told = columns_of(entry.module.kernels(info, entry.parse(options)))
        found = columns_of(obstacles.kernels(built(name, info, options)))
        if told != found:
            yield f"{name} {options}: told {told}, found {found}"


def columns_of(sizes):
    return [one for one in range(1, 65) if all(any(size % one == 0 for size in each) for each in sizes.values())]


def saving():
    for name, info in (("transformer_lm", LANGUAGE), ("wide_and_deep", CLICKS), ("gan", ROW)):
        model, batch = built(name, info, {}), example(info)
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.keras")
            again = keras.models.load_model(Path(folder) / "model.keras", safe_mode=True)
        if not np.allclose(model(batch), again(batch)):
            yield name


def example(info):
    random = np.random.default_rng(0)
    if info.tokens:
        return random.integers(0, info.tokens, (4, *info.shape)).astype(np.int32)
    batch = random.normal(size=(4, *info.shape)).astype(np.float32)
    for column, count in enumerate(info.categories):
        batch[:, column] = random.integers(0, count, 4)
    return batch


def causality():
    """What comes later changes nothing before it."""
    model, batch = built("transformer_lm", LANGUAGE, {}), example(LANGUAGE)
    other = batch.copy()
    other[:, 7] = (other[:, 7] + 1) % 50
    one, two = model(batch).numpy(), model(other).numpy()
    if not np.allclose(one[:, :7], two[:, :7], atol=1e-6) or np.allclose(one[:, 7:], two[:, 7:]):
        yield "a later token is seen"


def ids():
    """Half precision must not round them: 65,537 is none of its numbers."""
    keras.mixed_precision.set_dtype_policy("mixed_bfloat16")
    model = built("wide_and_deep", CLICKS, {})
    keras.mixed_precision.set_dtype_policy("float32")
    table = model.get_layer("wide_0")
    table.set_weights([np.arange(70_000, dtype=np.float32)[:, None].repeat(2, 1)])
    inner = keras.Model(model.inputs, table.output)
    rows = np.array([[65_537, 1, 1, 0, 0]], np.float32)
    if float(inner(tf.constant(rows))[0, 0]) != 65_537:
        yield f"id 65537 became {float(inner(tf.constant(rows))[0, 0])}"


def losses():
    random = np.random.default_rng(1)
    logits, targets = tf.constant(random.normal(size=(6, 4)), tf.float32), tf.constant([0, 1, 2, 3, 1, 1])
    wanted = keras.losses.categorical_crossentropy(tf.one_hot(targets, 4), logits, True, label_smoothing=0.2)
    found, _ = Objective("classification", smoothing=0.2).values(targets, logits)
    if not np.allclose(wanted, found, atol=1e-6):
        yield "smoothing"
    plain, _ = Objective("classification").values(targets, logits)
    weighted, _ = Objective("classification", weights=(1, 2.5, 0, 1)).values(targets, logits)
    if not np.allclose(weighted, plain * np.array([1, 2.5, 0, 1, 2.5, 2.5]), atol=1e-6):
        yield "weights"
    if not np.allclose(balanced(targets.numpy(), 4), [1.5, 0.5, 1.5, 1.5]):
        yield "balanced"
    words = tf.reshape(logits, [2, 3, 4])
    loss, right = Objective("language_model", tokens=True).values(tf.reshape(targets, [2, 3]), words)
    if not np.allclose(loss, tf.reduce_mean(tf.reshape(plain, [2, 3]), 1)) or right.shape != (2,):
        yield "language model"
    pictures = random.normal(size=(2, 3, 3, 1)).astype(np.float32)
    inputs, same = Objective("reconstruction").prepare(pictures, None, 2.0)
    loss, _ = Objective("reconstruction").values(same, tf.zeros_like(inputs))
    if not np.allclose(loss, (4 * pictures**2).mean((1, 2, 3)), atol=1e-5):
        yield "reconstruction"


def schedules():
    """The rate on the device is the one that is told, and Keras' own cosine."""
    for schedule in (
        {"kind": "constant"},
        {"kind": "step", "every_steps": 7, "factor": 0.5},
        {"kind": "cosine", "final": 0.1},
    ):
        for warmup in (0, 5):
            training = {"epochs": None, "steps": 40, "schedule": schedule, "warmup_steps": warmup}
            spec = parse(seed_with(training=training))
            optimizer = build_optimizer(spec)
            optimizer.build([])
            for step in range(1, 41):
                optimizer.iterations.assign(step - 1)
                if not np.isclose(float(optimizer.learning_rate), learning_rate_at(spec, step), rtol=1e-6, atol=1e-9):
                    yield f"{schedule} with {warmup} at step {step}"
    spec = parse(seed_with(training={"epochs": None, "steps": 40, "schedule": {"kind": "cosine", "final": 0.1}}))
    cosine = keras.optimizers.schedules.CosineDecay(spec.peak_learning_rate, 39, alpha=0.1)
    if not all(np.isclose(float(cosine(step - 1)), learning_rate_at(spec, step), rtol=1e-5) for step in range(1, 41)):
        yield "not Keras' cosine"


def players():
    """Each network of a pair follows its own loss, by its own optimizer."""
    model = {"name": "gan", "options": {"units": [8], "generator_rate": 2.0}}
    spec = parse(seed_with(model=model, training={"global_batch": 4, "optimizer": {"name": "sgd"}}))
    model, batch = built("gan", spec.dataset_info, spec.model.options), example(spec.dataset_info)
    weights, [seed] = model.trainable_variables, [v for v in model.non_trainable_variables if "seed" in v.name]
    optimizer = build_optimizer(spec)
    optimizer.build(weights)
    before, state = [weight.numpy() for weight in weights], seed.numpy()
    *gradients, _ = _gradients_of(model, optimizer, objective_of(spec), spec)(tf.constant(batch), None)
    optimizer.apply(gradients, weights)
    after = [weight.numpy() for weight in weights]
    seed.assign(state)
    model.set_weights(before)
    with tf.GradientTape(persistent=True) as tape:
        real, drawn = tf.unstack(model(batch, training=True), axis=1)
        telling = tf.reduce_mean(tf.math.softplus(-real) + tf.math.softplus(drawn))
        drawing = tf.reduce_mean(tf.math.softplus(-drawn))
    for weight, old, new in zip(weights, before, after, strict=True):
        loss, rate = (drawing, 0.02) if weight.path.startswith("generator") else (telling, 0.01)
        if not np.allclose(new, old - rate * tape.gradient(loss, weight.value), atol=1e-6):
            yield weight.path


CLAIMS = (counts, kernels, saving, causality, ids, losses, schedules, players)
print(json.dumps({claim.__name__: list(claim()) for claim in CLAIMS}))
