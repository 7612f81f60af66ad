"""What models with dense layers in a row share; `widths` are of what enters the first, and of what each one gives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def parameters(widths: Sequence[int]) -> int:
    """Weights and biases."""
    return sum((width + 1) * after for width, after in itertools.pairwise(widths))


def kernels(widths: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Each layer by its outputs and its inputs; all but the last are those of the option `units`."""
    pairs = [(after, width) for width, after in itertools.pairwise(widths)]
    names = [*(f"model.options.units.{number}" for number in range(len(pairs) - 1)), "the logits"]
    return dict(zip(names, pairs, strict=True))
