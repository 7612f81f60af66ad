"""What is minimised and what is shown beside it, for each kind of task; per example, so that any sharding adds up."""

from __future__ import annotations

from typing import Any, NamedTuple

from workers.contract.data import DatasetInfo


class Objective(NamedTuple):
    """`metric` names the second value of `values` (workers/contract/metrics.py)."""

    task: str
    metric: str

    def values(self, targets: Any, outputs: Any) -> tuple[Any, Any]:
        """Loss and metric of each example: two float32 [batch]. `targets` and `outputs` as in Arrays and the model."""
        import tensorflow as tf

        outputs = tf.cast(outputs, tf.float32)
        if self.task == "regression":
            difference = outputs - tf.reshape(targets, tf.shape(outputs))
            return tf.reduce_mean(tf.square(difference), -1), tf.reduce_mean(tf.abs(difference), -1)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=outputs)
        right = tf.equal(tf.argmax(outputs, -1, output_type=tf.int32), targets)
        return losses, tf.cast(right, tf.float32)


def objective_of(info: DatasetInfo) -> Objective:
    """Cross-entropy with accuracy, or mean squared error with mean absolute error."""
    if info.task == "regression":
        return Objective("regression", "mean_absolute_error")
    return Objective("classification", "accuracy")
