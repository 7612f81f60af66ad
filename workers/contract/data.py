"""What a dataset says of itself without being loaded, so that a form knows it before any training host does."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from workers.contract.base import Strict


class DatasetInfo(Strict):
    """`shape` is one example's, without the batch; `samples` counts training examples before the validation split.

    `classes` is None for regression, whose targets have `targets` columns.
    """

    task: Literal["classification", "regression"] = "classification"
    shape: tuple[int, ...]
    classes: int | None = Field(None, ge=2)
    targets: int = Field(1, ge=1)
    samples: int = Field(ge=1)
    test_samples: int = Field(0, ge=0)
    bytes_per_value: int = 4

    @property
    def outputs(self) -> int:
        """Width of the model's last layer."""
        return self.classes if self.classes is not None else self.targets

    @property
    def features(self) -> int:
        """Values in one example."""
        return math.prod(self.shape)

    def training_samples(self, validation_split: float) -> int:
        """Examples left for training; the engine splits with this same rule."""
        return self.samples - self.validation_samples(validation_split)

    def validation_samples(self, validation_split: float) -> int:
        """Examples held out, rounded down, but at least one when anything is asked for."""
        if validation_split <= 0:
            return 0
        return max(1, int(self.samples * validation_split))
