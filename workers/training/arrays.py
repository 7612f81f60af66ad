"""What a dataset hands over once loaded, and how it says that it cannot."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DataError(Exception):
    """A dataset cannot be loaded; the message is one sentence that ends with what to do."""


@dataclasses.dataclass(frozen=True)
class Arrays:
    """A whole dataset in memory.

    Features are [samples, *shape], float32 or a smaller type that `scale` brings to float32 on the device; targets are
    int32 [samples] for classification, float32 [samples, targets] for regression. The test arrays are both None or both
    given.
    """

    features: NDArray[Any]
    targets: NDArray[Any]
    test_features: NDArray[Any] | None = None
    test_targets: NDArray[Any] | None = None
    scale: float = 1.0


def data_home() -> Path:
    """The folder under which datasets keep their files: KERAS_HOME, else ~/.keras, as Keras has it."""
    return Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras")
