"""Micro-batches: the gradients of several global batches, added up before the optimizer sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workers.training.objective import Objective

MOST_UNROLLED = 4


def unrolled(micro_batches: int) -> int:
    """How many are compiled as one piece, of a step that goes through them in equal rounds.

    All of them would be the quickest step, and would take minutes to compile; a round costs about a millisecond.
    """
    return max(number for number in range(1, MOST_UNROLLED + 1) if micro_batches % number == 0)


def plus(one: list[Any], other: list[Any]) -> list[Any]:
    """Tensor by tensor."""
    import tensorflow as tf

    return [tf.add(*pair) for pair in zip(one, other, strict=True)]


def summed(
    gradients_of: Callable[..., list[Any]], objective: Objective, data: tuple[Any, Any, Any], batches: Iterable[Any]
) -> list[Any]:
    """What `gradients_of` gives for all batches together, each the numbers of its rows in `data`: features, targets
    and their scale. One after the other: side by side they would need the memory of one large batch.
    """
    import tensorflow as tf

    features, targets, scale = data
    total: list[Any] = []
    for rows in batches:
        with tf.control_dependencies(total):
            batch = objective.prepare(tf.gather(features, rows), tf.gather(targets, rows), scale)
            found = gradients_of(*batch)
            total = plus(total, found) if total else found
    return total
