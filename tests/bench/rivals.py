"""The training loops that Lockstep is measured beside: one process of a job, `python -m tests.bench.rivals PLACE.json`.

It has the devices and the place in the cluster that a process of Lockstep would have. Orders come as JSON lines in
RUN/orders, and the first process answers each in RUN/answers: how many seconds the steps took, or why they fail.
"""

import json
import re
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.training import data, devices
from workers.training.distribution import connect

LOOK_SECONDS = 0.02


class Watch(keras.callbacks.Callback):
    """When each call ended."""

    def __init__(self):
        super().__init__()
        self.moments = []

    def on_train_batch_end(self, batch, logs=None):
        self.moments.append(time.perf_counter())


class Rivals:
    """Each method takes `steps` steps of the place's job, and may say itself how many seconds they took."""

    def __init__(self, place):
        self._spec = place.spec
        self._batch = place.spec.samples_per_step
        self._adapter = connect(place)
        self._strategy = self._adapter.strategy
        loaded = data.load(self._spec)
        self._features = loaded.training.features.astype(np.float32) * np.float32(loaded.scale)
        self._targets = loaded.training.targets
        self._bare = self._gathered = None
        self._fits = {}

    def bare(self, steps, call):
        """A loop by hand: tf.data, `call` steps a device call, one answer from the device a call."""
        if self._bare is None:
            step, rows = self._step(), iter(self._distributed())

            @tf.function
            def walk(count):
                total = tf.zeros([2])
                for _ in tf.range(count):
                    total += self._strategy.reduce("SUM", self._strategy.run(step, (next(rows),)), axis=None)
                return total

            self._bare = walk
        for _ in range(steps // call):
            self._bare(tf.constant(call)).numpy()

    def gathered(self, steps, call):
        """The same with all data and the order of the samples on the device, without tf.data."""
        if self._gathered is None:
            step = self._step()
            features, targets = tf.constant(self._features), tf.constant(self._targets)
            order = data.epoch_order(len(self._features), seed=1, epoch=0, shuffle=True)
            order = tf.constant(data.replica_batches(order, global_batch=self._batch, replicas=1, replica=0)[:, 0])

            @tf.function
            def walk(count):
                total = tf.zeros([2])
                for index in tf.range(count):
                    rows = order[index % len(order)]
                    total += self._strategy.run(step, ((tf.gather(features, rows), tf.gather(targets, rows)),))
                return total

            self._gathered = walk
        for _ in range(steps // call):
            self._gathered(tf.constant(call)).numpy()

    def fit(self, steps, call):
        """Keras' own, `call` steps per execution."""
        return self._fit(steps, call)

    def fit_tensorboard(self, steps, call):
        """Keras' own with a point for every step, which is what Lockstep tells."""
        board = keras.callbacks.TensorBoard(tempfile.mkdtemp(prefix="bench-tb-"), update_freq=1)
        return self._fit(steps, 1, board)

    def _fit(self, steps, call, *callbacks):
        """Seconds from the end of its second call on, scaled to all steps: each `fit` begins with work of its own."""
        watch = Watch()
        self._compiled(call).fit(self._rows(), steps_per_epoch=steps, verbose=0, callbacks=[*callbacks, watch])
        calls = len(watch.moments)
        return (watch.moments[-1] - watch.moments[1]) * calls / (calls - 2) if calls > 2 else None

    def _compiled(self, call):
        if call not in self._fits:
            model, optimizer = self._network()
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            # Keras would choose XLA by itself, which compiles for minutes and is slower on processors.
            model.compile(optimizer, loss, metrics=["accuracy"], steps_per_execution=call, jit_compile=False)
            self._fits[call] = model
        return self._fits[call]

    def _network(self):
        """The job's model and optimizer, as Keras makes them."""
        keras.utils.set_random_seed(1)
        info, chosen = self._spec.dataset_info, self._spec.model.name
        build = catalog.find("model", chosen).module.build_model
        with self._scope():
            model = build(info, self._spec.options_of("model"))
            optimizer = keras.optimizers.RMSprop(1e-4)
            optimizer.build(model.trainable_variables)
        return model, optimizer

    def _scope(self):
        return self._adapter.scope()

    def _step(self):
        model, optimizer = self._network()
        weights = model.trainable_variables

        def step(rows):
            features, targets = rows
            with tf.GradientTape() as tape:
                logits = model(features, training=True)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
                loss = tf.reduce_sum(losses) / self._batch
            optimizer.apply(tape.gradient(loss, weights), weights)
            right = tf.equal(tf.argmax(logits, -1, output_type=tf.int32), targets)
            return tf.stack([loss, tf.reduce_sum(tf.cast(right, tf.float32))])

        return step

    def _rows(self):
        rows = tf.data.Dataset.from_tensor_slices((self._features, self._targets))
        rows = rows.shuffle(len(self._features), seed=1).repeat().batch(self._batch, drop_remainder=True)
        sharding = tf.data.Options()
        sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        return rows.prefetch(tf.data.AUTOTUNE).with_options(sharding)

    def _distributed(self):
        return self._strategy.experimental_distribute_dataset(self._rows())


class ParameterServers(Rivals):
    """The chief's, as TensorFlow's tutorial has it: a step a closure."""

    def bare(self, steps, call):
        if self._bare is None:
            take, rows = self._step(), self._adapter.coordinator.create_per_worker_dataset(self._rows)

            @tf.function
            def step(iterator):
                return self._strategy.run(take, (next(iterator),))

            self._bare = step, iter(rows)
        for _ in range(steps):
            self._adapter.coordinator.schedule(self._bare[0], args=(self._bare[1],))
        self._adapter.coordinator.join()

    def _scope(self):
        return self._strategy.scope()


def answer(rivals, order):
    try:
        began = time.perf_counter()
        seconds = getattr(rivals, order["loop"])(order["steps"], order["call"])
        return {"seconds": seconds or time.perf_counter() - began}
    except Exception as error:  # noqa: BLE001  that it fails is the answer
        return {"fails": reason(error)}


def reason(error):
    """One line; tensors' values, the way through the graph and the list of all that failed with it left out."""
    text = re.sub(r"\(PerReplica:\{.*\}\)", "(PerReplica)", str(error), flags=re.DOTALL)
    text = re.sub(r".*\(0\) \w+:\s+", "", text, flags=re.DOTALL)
    skipped = ("Graph execution error", "Detected at", "File ", "[[")
    said = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(skipped)]
    return f"{type(error).__name__}: {said[0] if said else 'no message'}"


def main(place):
    devices.configure(place)
    if place.serves:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        process = place.process
        tf.distribute.Server(resolver.cluster_spec(), job_name=process.role, task_index=process.index).join()
    rivals = (ParameterServers if place.process.role == "chief" else Rivals)(place)
    run = Path(place.run)
    (run / f"ready-{place.process.name}").touch()
    taken = 0
    while True:
        lines = (run / "orders").read_text().splitlines(keepends=True) if (run / "orders").exists() else []
        if len(lines) == taken or not lines[taken].endswith("\n"):
            time.sleep(LOOK_SECONDS)
            continue
        found = answer(rivals, json.loads(lines[taken]))
        taken += 1
        if place.process == place.processes[0]:
            with (run / "answers").open("a") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Place.model_validate_json(Path(sys.argv[1]).read_bytes()))
