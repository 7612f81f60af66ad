"""The residual network: what is known of its weight, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from workers.contract import catalog
from workers.contract.data import DatasetInfo


def count(inputs: tuple[int, ...], outputs: int, **given: Any) -> int:
    entry = catalog.find("model", "resnet")
    info = DatasetInfo(shape=inputs, classes=outputs, samples=1)
    weights: int = entry.module.count_parameters(info, entry.parse(given))
    return weights


@pytest.mark.parametrize(("depth", "trained", "statistics"), [(18, 11_689_512, 9_600), (50, 25_557_032, 53_120)])
def test_it_has_the_weights_that_are_known_of_it(depth: int, trained: int, statistics: int) -> None:
    """torchvision's resnet18 and resnet50 on ImageNet."""
    assert count((224, 224, 3), 1000, depth=depth) == trained + statistics


@pytest.mark.parametrize(
    ("shape", "given", "path"),
    [
        ((30,), {}, "name"),
        ((7, 8, 1), {}, "name"),
        ((31, 32, 3), {"stem": "imagenet"}, "options.stem"),
        ((4, 4, 3), {"stem": "imagenet"}, "name"),
    ],
)
def test_it_refuses_pictures_that_it_would_halve_away(shape: tuple[int, ...], given: dict[str, Any], path: str) -> None:
    entry = catalog.find("model", "resnet")
    [problem] = entry.module.check(entry.parse(given), DatasetInfo(shape=shape, classes=2, samples=10))
    assert problem.path == path


def test_it_takes_the_smallest_pictures_of_each_stem() -> None:
    entry = catalog.find("model", "resnet")
    for side, stem in ((8, "small"), (32, "imagenet")):
        info = DatasetInfo(shape=(side, side, 1), classes=2, samples=10)
        assert entry.module.check(entry.parse({"stem": stem}), info) == []
