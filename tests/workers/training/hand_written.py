"""A training loop as people write it on one device, without the engine's loop: `hand_written.py SPEC MODEL...`.

Prints JSON: each step's loss, the validation metrics, how far each of the models' weights are from its own, and how
often each model is right on the whole dataset.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from workers.contract import catalog
from workers.contract import spec as contract
from workers.training import data

job = contract.parse(Path(sys.argv[1]).read_bytes())
loaded = data.load(job)
info, training = job.dataset_info, job.training
keras.utils.set_random_seed(training.seed)
model = catalog.find("model", job.model.name).module.build_model(info, job.options_of("model"))
optimizer = keras.optimizers.RMSprop(training.optimizer.learning_rate)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step(features, targets):
    with tf.GradientTape() as tape:
        loss = loss_of(targets, model(features, training=True))
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    return loss


losses = []
for number in range(job.total_steps):
    epoch, place = divmod(number, job.steps_per_epoch)
    order = data.epoch_order(len(loaded.training), seed=training.seed, epoch=epoch, shuffle=training.shuffle)
    rows = order[place * training.global_batch : (place + 1) * training.global_batch]
    losses.append(float(step(loaded.training.features[rows], loaded.training.targets[rows])))

logits = model(loaded.validation.features, training=False).numpy()
answer = {
    "losses": losses,
    "val_loss": float(loss_of(loaded.validation.targets, logits)),
    "val_accuracy": float((logits.argmax(-1) == loaded.validation.targets).mean()),
    "distances": {},
    "right": {},
}
features = np.concatenate([loaded.training.features, loaded.validation.features])
targets = np.concatenate([loaded.training.targets, loaded.validation.targets])
for path in sys.argv[2:]:
    saved = keras.models.load_model(path)
    if len(saved.weights) == len(model.weights) and saved.weights[0].shape == model.weights[0].shape:
        pairs = zip(saved.get_weights(), model.get_weights(), strict=True)
        answer["distances"][path] = max(float(np.abs(a - b).max()) for a, b in pairs)
    answer["right"][path] = float((saved.predict(features, verbose=0).argmax(-1) == targets).mean())
print(json.dumps(answer))
