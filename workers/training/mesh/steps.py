"""Steps and evaluation on a DTensor mesh: one compiled step on whole tensors, called once a step.

DTensor compiles no loops, so K steps of a call are K calls one after the other. On 2 x 2 CPUs with a small MLP that is
3.9 ms a step (measured); 2.6 ms with eight steps unrolled into one call, which took seven times as long to compile.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.contract.spec import JobSpec
from workers.training.data import Split, epoch_order, replica_batches
from workers.training.evaluation import Evaluator, shard_of
from workers.training.inference.predictor import Predictor
from workers.training.mesh.constants import as_arrays
from workers.training.micro_batches import plus, summed, unrolled
from workers.training.objective import Objective
from workers.training.steps import Hints, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.mesh.meshed import Meshed

AVERAGE = "LockstepMeshAvgPool"


class MeshedSteps:
    """Every device holds the training data; each step is told the rows of its global batch, split over the mesh.

    With local aggregation the gradients of the micro-batches are added up before the optimizer sees them; but DTensor
    may sum each of them over the mesh, so that it saves no communication here.
    """

    def __init__(self, mesh: Meshed, model: Any, optimizer: Any, objective: Objective, spec: JobSpec) -> None:
        self._mesh, self._spec = mesh, spec
        self._optimizer = optimizer
        self._objective = objective
        self._gradients = _gradients_of(mesh, model, objective, spec)
        self._rows: NDArray[np.int32] = np.zeros((0, 0, 0), np.int32)

    def place(self, split: Split, scale: float) -> None:
        """Copy the training data to every device, once."""
        self._samples = len(split)
        self._data = (self._mesh.put(split.features), self._mesh.put(split.targets), self._mesh.put(np.float32(scale)))
        self._compile()

    def _compile(self) -> None:
        import tensorflow as tf

        self._call = tf.function(lambda *share: self._applied(self._sums(*share)), autograph=False)
        self._add = tf.function(self._added, autograph=False)
        self._apply = tf.function(self._applied, autograph=False)
        if self._spec.micro_batches > 1:
            self._zeros = [*map(self._mesh.zeros_like, self._mesh.weights), self._mesh.put(np.zeros(2, np.float32))]

    def begin_epoch(self, epoch: int) -> None:
        """Decide the order of an epoch (counted from 0)."""
        training, micro_batches = self._spec.training, self._spec.micro_batches
        order = epoch_order(self._samples, seed=training.seed, epoch=epoch, shuffle=training.shuffle)
        self._rows = replica_batches(
            order, global_batch=training.global_batch, micro_batches=micro_batches, replicas=1, replica=0
        )

    under_way = 0

    def run(self, start: int, count: int, hints: Hints, fence: int) -> Outcome:
        """Take `count` steps of the epoch from step `start` on; returns when they are done."""
        from tensorflow.experimental import dtensor

        answers = [self._take(*self._examples(place)) for place in range(start, start + count)]
        losses, metrics = np.stack([dtensor.unpack(answer)[0].numpy() for answer in answers], 1)
        means = self._mesh.summed(hints) / self._mesh.processes
        return Outcome(losses, metrics, Hints(*map(float, means)))

    def _examples(self, place: int) -> tuple[tuple[Any, ...], list[Any]]:
        """Features, targets and their scale on the devices, and the rows of each micro-batch of a step of the epoch."""
        return self._data, [self._mesh.split_batch(some) for some in self._rows[place]]

    def _take(self, data: tuple[Any, ...], rows: list[Any]) -> Any:
        """One step: float32 [2], the loss and the metric sum of its examples, alike on every device."""
        together = unrolled(len(rows))
        if together == len(rows):
            return self._call(*data, rows)
        total = self._zeros
        for first in range(0, len(rows), together):
            total = self._add(total, *data, rows[first : first + together])
        return self._apply(total)

    def _added(self, total: list[Any], *share: Any) -> list[Any]:
        return plus(total, self._sums(*share))

    def _sums(self, features: Any, targets: Any, scale: Any, order: list[Any]) -> list[Any]:
        """What some micro-batches give together: gradients, and float32 [2]."""
        return summed(self._gradients, self._objective, (features, targets, scale), order)

    def _applied(self, total: list[Any]) -> Any:
        *gradients, result = total
        self._optimizer.apply(gradients, self._mesh.weights)
        return result


class MeshedEvaluator(Evaluator):
    """One split of the data on the mesh in chunks, each padded, masked, and shared by the rows of the mesh."""

    def __init__(
        self, mesh: Meshed, model: Any, objective: Objective, *, split: Split, scale: float, batch: int
    ) -> None:
        import tensorflow as tf

        self._objective = objective
        self._model = lambda inputs, training: _outputs(mesh, model, inputs, mesh.values(), training=training)[0]
        shards = [shard_of(split, replica, mesh.replicas, batch) for replica in range(mesh.replicas)]
        # One axis before the examples: what the step takes is one chunk of a list.
        wholes = [np.concatenate(parts, 1) for parts in zip(*shards, strict=True)]
        self._arguments = [list(map(mesh.split_batch, whole)) for whole in wholes]
        self._scale = mesh.put(np.float32(scale))
        self._compiled = tf.function(self._chunk, autograph=False)
        self._call = self._all

    def _all(self, *parts: list[Any]) -> Any:
        """Float32 [3 * chunks], as the one call of other strategies has it."""
        import tensorflow as tf
        from tensorflow.experimental import dtensor

        sums = [self._compiled(*chunk, self._scale) for chunk in zip(*parts, strict=True)]
        return tf.constant(np.stack([dtensor.unpack(each)[0].numpy() for each in sums], 1).ravel())

    def _chunk(self, features: Any, targets: Any, mask: Any, scale: Any) -> Any:
        return self._step([features], [targets], [mask], scale, 0)


class MeshedPredictor(Predictor):
    """Each block shared by the rows of the mesh; what comes of it is gathered on every device."""

    def __init__(self, mesh: Meshed, model: Any, objective: Objective, *, scale: float) -> None:
        self._mesh = mesh
        super().__init__(mesh, self._of_mesh(model), objective, scale=scale)

    def _of_mesh(self, model: Any) -> Callable[..., Any]:
        mesh = self._mesh
        return lambda inputs, training: _outputs(mesh, model, inputs, mesh.values(), training=training)[0]

    def _scales(self, scale: float) -> Any:
        return self._mesh.put(np.float32(scale))

    def _answers(self, columns: list[list[NDArray[Any]]]) -> NDArray[np.float32]:
        from tensorflow.experimental import dtensor

        wholes = [self._mesh.split_batch(np.concatenate(parts)) for parts in columns]
        answers: NDArray[np.float32] = dtensor.unpack(self._call(*wholes, self._scale))[0].numpy()
        return answers

    def _block(self, features: Any, targets: Any, scale: Any) -> Any:
        from tensorflow.experimental import dtensor

        return dtensor.relayout(self._step(features, targets, scale), dtensor.Layout.replicated(self._mesh.mesh, 2))


def _gradients_of(mesh: Meshed, model: Any, objective: Objective, spec: JobSpec) -> Callable[..., list[Any]]:
    """Of one global batch: the gradients, and float32 [2] as `_take` has it."""
    import tensorflow as tf

    summed = spec.training.aggregation.method == "sum"

    def gradients_of(features: Any, targets: Any) -> list[Any]:
        weights = mesh.values()
        with _gradients_that_dtensor_knows():
            outputs, after = _outputs(mesh, model, features, weights, training=True)
        losses, metrics = objective.values(targets, outputs)
        total = tf.reduce_sum(losses)
        loss = total / spec.samples_per_step
        gradients = tf.gradients(total if summed else loss, weights)
        for variable, value in zip(mesh.statistics, after, strict=True):
            variable.assign(value)
        return [*map(tf.convert_to_tensor, gradients), tf.stack([loss, tf.reduce_sum(metrics)])]

    return gradients_of


def _outputs(mesh: Meshed, model: Any, features: Any, weights: list[Any], *, training: bool) -> tuple[Any, list[Any]]:
    """The model's outputs with its variables as the mesh has them, and what its statistics are afterwards."""
    statistics = [variable.value.read_value() for variable in mesh.statistics]
    # Or DTensor carries how the first layer takes its inputs back to the rows that they are gathered from.
    features = mesh.whole_examples(features)
    with as_arrays(model), mesh.laid_out(model):
        outputs, after = model.stateless_call(mesh.for_use(weights), statistics, features, training=training)
    return outputs, list(after)


@contextlib.contextmanager
def _gradients_that_dtensor_knows() -> Iterator[None]:
    """DTensor has no rule for the gradient of an average over windows: operations made inside get one of convolutions.

    Only tf.gradients heeds it, tapes do not.
    """
    import tensorflow as tf

    _register()
    with tf.compat.v1.get_default_graph().gradient_override_map({"AvgPool": AVERAGE}):
        yield


@functools.cache
def _register() -> None:
    import tensorflow as tf

    def average(op: Any, gradient: Any) -> Any:
        """Every value that was in a window gets its share of what came out of it, by a convolution with ones."""
        inputs, (_, height, width, _) = op.inputs[0], op.get_attr("ksize")
        strides, padding = op.get_attr("strides"), op.get_attr("padding").decode()
        _, rows, columns, channels = inputs.shape
        window = tf.ones([height, width, 1, 1], gradient.dtype)
        # Fewer than height * width at the edges of SAME padding.
        counts = tf.nn.conv2d(tf.ones([1, rows, columns, 1], gradient.dtype), window, strides, padding)
        spread = window * tf.eye(channels, dtype=gradient.dtype)
        return tf.nn.conv2d_transpose(gradient / counts, spread, tf.shape(inputs), strides, padding)

    tf.RegisterGradient(AVERAGE)(average)
