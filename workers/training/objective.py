"""What is minimised and what is shown beside it, for each kind of task; per example, so that any sharding adds up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from workers.contract.data import Task
from workers.contract.metrics import METRIC_OF
from workers.contract.spec import JobSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Objective(NamedTuple):
    """`smoothing` and `weights` (one for each class, or none) are for training; what is evaluated goes without."""

    task: Task
    tokens: bool = False
    smoothing: float = 0.0
    weights: tuple[float, ...] = ()

    @property
    def metric(self) -> str:
        """Names the second value of `values` (workers/contract/metrics.py)."""
        return METRIC_OF[self.task]

    def prepare(self, features: Any, targets: Any, scale: Any) -> tuple[Any, Any]:
        """A batch as the model takes it, and its targets: token ids as they are, all else float32 times `scale`."""
        import tensorflow as tf

        inputs = features if self.tokens else tf.cast(features, tf.float32) * scale
        return inputs, inputs if self.task == "reconstruction" else targets

    def values(self, targets: Any, outputs: Any) -> tuple[Any, Any]:
        """Loss and metric of each example: two float32 [batch]. `targets` from `prepare`, `outputs` the model's.

        Of a language model both are means over the example's tokens, of a reconstruction over its values. Of an
        adversarial pair they are the discriminator's and the generator's loss (the one that does not saturate).
        """
        import tensorflow as tf

        outputs = tf.cast(outputs, tf.float32)
        if self.task in ("regression", "reconstruction"):
            difference = _flat(outputs) - _flat(tf.reshape(targets, tf.shape(outputs)))
            return tf.reduce_mean(tf.square(difference), -1), tf.reduce_mean(tf.abs(difference), -1)
        if self.task == "adversarial":
            real, drawn = tf.unstack(outputs, axis=-1)
            return tf.nn.softplus(-real) + tf.nn.softplus(drawn), tf.nn.softplus(-drawn)
        losses = self._cross_entropy(targets, outputs)
        right = tf.cast(tf.equal(tf.argmax(outputs, -1, output_type=tf.int32), targets), tf.float32)
        if self.task == "language_model":
            return tf.reduce_mean(losses, -1), tf.reduce_mean(right, -1)
        return losses, right

    def answers(self, outputs: Any) -> Any:
        """What is predicted of each example, float32 [batch, width]: its class and the probability of each one, the
        tokens that follow each of its own, or the values.
        """
        import tensorflow as tf

        outputs = tf.cast(outputs, tf.float32)
        if self.task in ("regression", "reconstruction"):
            return _flat(outputs)
        likeliest = tf.cast(tf.argmax(outputs, -1, output_type=tf.int32), tf.float32)
        if self.task == "language_model":
            return likeliest
        return tf.concat([likeliest[:, None], tf.nn.softmax(outputs)], 1)

    def named(self, loss: float, metric: float) -> dict[str, float]:
        """Means over any number of examples by name, with what follows from them."""
        found = {"loss": loss, self.metric: metric}
        return found | ({"perplexity": _perplexity(loss)} if self.task == "language_model" else {})

    def of_steps(self, losses: NDArray[Any], metrics: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """`named` for each of K steps: arrays [K]."""
        import numpy as np

        found: dict[str, NDArray[Any]] = {"loss": losses, self.metric: metrics}
        if self.task == "language_model":
            found["perplexity"] = np.array(list(map(_perplexity, losses.tolist())))
        return found

    def _cross_entropy(self, targets: Any, logits: Any) -> Any:
        """Of each target; smoothing mixes the true class with all of them alike (Szegedy et al., 2016)."""
        import tensorflow as tf

        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        if self.smoothing:
            uniform = -tf.reduce_mean(tf.nn.log_softmax(logits), -1)
            losses = (1 - self.smoothing) * losses + self.smoothing * uniform
        return losses * tf.gather(tf.constant(self.weights, tf.float32), targets) if self.weights else losses


def _perplexity(loss: float) -> float:
    return math.exp(loss) if not loss > 700 else math.inf


def objective_of(spec: JobSpec) -> Objective:
    """What is evaluated: cross-entropy with accuracy, or squared with absolute differences."""
    return Objective(spec.task, spec.dataset_info.tokens is not None)


def training_objective(spec: JobSpec, examples: Any) -> Objective:
    """What is minimised. `examples` are the Split to train on, whose targets balanced class weights count."""
    training = spec.training
    weights: Sequence[float] = ()
    if training.class_weights == "balanced":
        weights = balanced(examples.targets, spec.dataset_info.outputs)
    elif training.class_weights:
        weights = [training.class_weights.get(index, 1.0) for index in range(spec.dataset_info.outputs)]
    return objective_of(spec)._replace(smoothing=training.label_smoothing, weights=tuple(weights))


def balanced(targets: Any, classes: int) -> list[float]:
    """Weights that give each class the same part in the loss: samples / (classes * those of the class); mean 1."""
    import numpy as np

    counts = np.bincount(targets, minlength=classes)
    return [float(len(targets) / (classes * count)) if count else 1.0 for count in counts]


def _flat(values: Any) -> Any:
    import tensorflow as tf

    return tf.reshape(values, [tf.shape(values)[0], -1])
