"""The chief's side of parameter servers: weights live on the servers, a copy of the model on the chief.

The copy gives the computation its structure and is what is evaluated and saved, brought up to date by `settle`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from workers.contract.assignment import Place
from workers.contract.layout import ProcessAssignment
from workers.contract.spec import JobSpec
from workers.training.checkpointing.state import is_seed
from workers.training.distribution import Distribution, packs
from workers.training.evaluation import Evaluator
from workers.training.inference.predictor import Predictor
from workers.training.objective import Objective
from workers.training.servers.answering import CoordinatedEvaluator, CoordinatedPredictor
from workers.training.servers.asynchronous import AsynchronousSteps
from workers.training.servers.roll_call import RollCall
from workers.training.servers.serving import DONE, STEP

MESSAGE_BYTES = 2**20
"""Larger values gain nothing from sharing a message, and are copied once more for it."""


class Kept(NamedTuple):
    """A variable of the model and its parts on the parameter servers, split along the first axis (mostly one part)."""

    own: Any
    parts: list[Any]

    def read(self) -> Any:
        """The whole value, in the shape of `own`."""
        return self.whole([part.read_value() for part in self.parts])

    def whole(self, values: list[Any]) -> Any:
        """One value of the values of the parts."""
        import tensorflow as tf

        return tf.concat(values, 0) if len(values) > 1 else values[0]

    def split(self, whole: Any) -> list[Any]:
        """A value of the shape of `own` as the parts have it."""
        import tensorflow as tf

        if len(self.parts) == 1:
            return [whole]
        return list(tf.split(whole, [part.shape[0] for part in self.parts], 0))


class Coordinated(Distribution):
    """A tf.distribute.ParameterServerStrategy. The chief counts alone, so to the loop there is one replica, here."""

    def __init__(self, strategy: Any, place: Place) -> None:
        import tensorflow as tf

        self.strategy = strategy
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self.workers = place.replicas
        self.replicas, self.local, self.processes = 1, (0,), 1
        self.roll_call = RollCall(place)
        self.roll_call.start()
        self._trains = place.spec.kind == "train"
        self.weights: list[Kept] = []
        self.statistics: list[Kept] = []
        self.servers = [process for process in place.processes if process.role != "chief"]

    def scope(self) -> Any:
        return contextlib.nullcontext()

    def run(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        return function(*args)

    def local_values(self, value: Any) -> tuple[Any, ...]:
        return (value,)

    def spread(self, values: Sequence[Any]) -> Any:
        import tensorflow as tf

        return tf.convert_to_tensor(values[0])

    def sum_gradients(self, gradients: list[Any]) -> list[Any]:
        return gradients

    def optimizer(self, model: Any, make: Callable[[], Any]) -> Any:
        """Puts the model's variables on the servers; the optimizer's own join them there, part by part."""
        import keras

        with self.strategy.scope():
            self.weights = [self._keep(variable) for variable in model.trainable_variables]
            self.statistics = [self._keep(v) for v in model.non_trainable_variables if not is_seed(v)]
            optimizer = make()
            # Keras names its own variables after these.
            names = [f"weight_{number}" for number in range(sum(len(kept.parts) for kept in self.weights))]
            parts = [part for kept in self.weights for part in kept.parts]
            self.parts = [keras.Variable(part, name=name) for part, name in zip(parts, names, strict=True)]
            optimizer.build(self.parts)
        return optimizer

    def steps(self, model: Any, optimizer: Any, objective: Objective, spec: JobSpec) -> AsynchronousSteps:
        return AsynchronousSteps(self, model, optimizer, objective, spec)

    def evaluator(self, model: Any, objective: Objective, **arguments: Any) -> Evaluator:
        """While steps are taken the chief evaluates its copy alone; else the workers have nothing else to do."""
        if self._trains:
            return super().evaluator(model, objective, **arguments)
        return CoordinatedEvaluator(self, model, objective, **arguments)

    def predictor(self, model: Any, objective: Objective, *, scale: float) -> Predictor:
        return CoordinatedPredictor(self, model, objective, scale=scale)

    def settle(self, model: Any) -> None:
        """Copy every variable from the servers."""
        for kept in (*self.weights, *self.statistics):
            kept.own.assign(kept.read())

    def stand_ins(self, model: Any) -> dict[int, list[Any]]:
        """The parts on the servers; only the states of random numbers live on the chief alone."""
        parts = iter(self.parts)
        weights = {id(kept.own): [next(parts) for _ in kept.parts] for kept in self.weights}
        return weights | {id(kept.own): kept.parts for kept in self.statistics}

    def read(self, kept: list[Kept]) -> list[Any]:
        """The values of `kept` as they are now, to be called in a worker. What is small comes in one message."""
        import tensorflow as tf

        parts = [part for each in kept for part in each.parts]
        found: dict[int, Any] = {}
        for pack in _messages(parts):
            with tf.device(pack[0].device):
                flat = tf.concat([tf.reshape(part.read_value(), [-1]) for part in pack], 0)
            split = tf.split(flat, [part.shape.num_elements() for part in pack])
            found |= {id(part): tf.reshape(value, part.shape) for part, value in zip(pack, split, strict=True)}
        return [each.whole([found[id(part)] for part in each.parts]) for each in kept]

    def sent(self, kept: list[Kept], values: list[Any]) -> list[tuple[Any, Any]]:
        """Each part on the servers with its part of `values`, brought there. What is small goes in one message, what is
        sparse (or None) goes as it is.
        """
        import tensorflow as tf

        parts = [part for each in kept for part in each.parts]
        pieces = [piece for each, value in zip(kept, values, strict=True) for piece in each.split(value)]
        by_part = {id(part): piece for part, piece in zip(parts, pieces, strict=True)}
        found = dict(by_part)
        for pack in _messages([part for part in parts if isinstance(by_part[id(part)], tf.Tensor)]):
            flat = tf.concat([tf.reshape(by_part[id(part)], [-1]) for part in pack], 0)
            with tf.device(pack[0].device):
                split = tf.split(tf.identity(flat), [part.shape.num_elements() for part in pack])
                found |= {id(part): tf.reshape(value, part.shape) for part, value in zip(pack, split, strict=True)}
        return [(part, found[id(part)]) for part in parts]

    def apply(self, optimizer: Any, gradients: list[Any]) -> None:
        """Let the servers apply a worker's gradients."""
        import tensorflow as tf

        gradients = [gradient for _, gradient in self.sent(self.weights, list(map(_each_row_once, gradients)))]
        devices = {part.device for kept in self.weights for part in kept.parts}
        # What belongs to no variable (the learning rate, a norm) is computed beside them where there is one place.
        with tf.device(devices.pop()) if len(devices) == 1 else contextlib.nullcontext():
            optimizer.apply(gradients, self.parts)

    def tell_servers(self, file: str, text: str) -> None:
        """Write a small file in the working folder of every server that still lives."""
        import tensorflow as tf

        for server in self.servers:
            if server.name in self.roll_call.gone:
                continue
            try:
                with tf.device(device_of(server)):
                    tf.io.write_file(file, text)
            except tf.errors.OpError as error:
                sys.stderr.write(f"{server.name} could not be told {file}: {error.message}\n")

    def welcome(self) -> None:
        """Tell the servers that from now on their job is training."""
        self.tell_servers(STEP, str(self.first_step))

    def meet(self) -> None:
        """Send the servers home."""
        self.tell_servers(DONE, "")

    def _keep(self, variable: Any) -> Kept:
        import tensorflow as tf

        made = tf.Variable(variable.numpy(), trainable=variable.trainable)
        return Kept(variable, list(getattr(made, "variables", [made])))


def _each_row_once(gradient: Any) -> Any:
    """The gradient of an embedding, whose rows come as often as they were used, summed by row; others as they are.

    Keras would square each of them by itself where an optimizer squares gradients.
    """
    import tensorflow as tf

    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(sums, rows, gradient.dense_shape)


def _messages(parts: list[Any]) -> list[list[Any]]:
    """Parts that travel together: of one server and one type, at most MESSAGE_BYTES in all or one alone."""
    by_server: dict[str, list[Any]] = {}
    for part in parts:
        by_server.setdefault(part.device, []).append(part)
    return [pack for own in by_server.values() for pack in packs(own, MESSAGE_BYTES)]


def device_of(process: ProcessAssignment) -> str:
    """TensorFlow's name of a server's processor."""
    return f"/job:{process.role}/replica:0/task:{process.index}/device:CPU:0"
