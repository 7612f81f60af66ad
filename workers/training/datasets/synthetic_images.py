"""Pictures made from noise around one pattern per class: any size, deterministic, learnable."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

title = "Synthetic images"
summary = "One random pattern per class plus noise. Any shape and size: for measuring a strategy, not for science."

MAX_VALUES = 1_000_000_000
SEED = 20_260
TEST_PART = 0.1


class Options(_Options):
    """How large the pictures are and how many."""

    shape: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(
        (32, 32, 3), title="Shape", description="Height, width and channels of one picture.", min_length=3, max_length=3
    )
    classes: int = Field(10, ge=2, le=10_000, title="Classes", description="How many kinds of pictures.")
    samples: int = Field(
        10_000,
        ge=10,
        le=10_000_000,
        title="Samples",
        description="Training pictures; a tenth as many more are made for the test.",
        json_schema_extra={"unit": "samples"},
    )

    @field_validator("samples")
    @classmethod
    def _fits_memory(cls, samples: int, info: Any) -> int:
        values = math.prod(info.data.get("shape", (1,)))
        if samples * values > MAX_VALUES:
            raise ValueError(f"would need {samples * values:,} bytes of memory; at most {MAX_VALUES // values:,} fit")
        return samples


def describe(options: Options) -> DatasetInfo:
    """As the options say."""
    return DatasetInfo(
        shape=options.shape,
        classes=options.classes,
        samples=options.samples,
        test_samples=max(1, int(options.samples * TEST_PART)),
        bytes_per_value=1,
    )


def load(options: Options, home: Path) -> Arrays:
    """Features [samples, *shape] uint8, scaled by 1/255; the same for the same options, everywhere."""
    import numpy as np

    random = np.random.default_rng(SEED)
    patterns = random.integers(64, 192, (options.classes, *options.shape), dtype=np.uint8)
    test = describe(options).test_samples
    features, targets = _draw(random, patterns, options.samples)
    test_features, test_targets = _draw(random, patterns, test)
    return Arrays(features, targets, test_features, test_targets, scale=1 / 255)


def _draw(random: Any, patterns: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    targets = random.integers(0, len(patterns), count).astype(np.int32)
    features = np.empty((count, *patterns.shape[1:]), np.uint8)
    for first in range(0, count, 1024):
        part = targets[first : first + 1024]
        noise = random.integers(0, 128, (len(part), *patterns.shape[1:]), dtype=np.uint8)
        # Between 32 and 223, so no byte overflows.
        features[first : first + 1024] = patterns[part] - 32 + noise // 2
    return features, targets
