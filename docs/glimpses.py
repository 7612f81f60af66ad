"""Writes what pages show of the datasets that come with Lockstep: webapp/library/glimpses/*.json (`make docs`).

The web process has neither NumPy nor scikit-learn, so the first examples are drawn here, once.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sklearn import datasets

from workers.contract import catalog
from workers.contract.library import Preview
from workers.sandbox.glimpses import of_arrays
from workers.training.datasets import tiny_text

FOLDER = Path(__file__).resolve().parent.parent / "webapp" / "library" / "glimpses"
NAMES: dict[str, list[str]] = {
    "synthetic_images": [],
    "synthetic_tokens": [f"token {place}" for place in range(1, 33)],
    "synthetic_clicks": [*(f"id {place}" for place in (1, 2, 3)), *(f"number {place}" for place in (1, 2, 3, 4))],
    "digits": [],
    "breast_cancer": list(datasets.load_breast_cancer().feature_names),
    "wine": datasets.load_wine().feature_names,
    "diabetes": datasets.load_diabetes().feature_names,
}
"""Of the columns of each dataset, as far as it has columns."""
PICTURES = 10
TEXT = 1_000


def glimpse(name: str) -> Preview:
    """The first examples of one dataset."""
    if name == "tiny_text":
        return Preview(text=tiny_text.FILE.read_text()[:TEXT])
    entry = catalog.find("dataset", name)
    options = entry.parse({})
    arrays = entry.module.load(options, FOLDER)
    targets = None if entry.module.describe(options).task == "language_model" else arrays.targets[:PICTURES]
    return of_arrays(arrays.features[:PICTURES], targets, names=NAMES[name])


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in (*NAMES, "tiny_text"):
        text = glimpse(name).model_dump_json(exclude_defaults=True)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
