"""Jobs that every synchronous strategy must compute alike: each aggregation, each way to clip, batch normalization."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def _job(model: dict[str, Any], **training: Any) -> dict[str, Any]:
    return {
        "version": "lockstep/v1",
        "name": "exact",
        "dataset": {"name": "digits"},
        "model": model,
        "training": {"steps": 20, "global_batch": 120, "seed": 5, **training},
    }


SMOOTH: dict[str, Any] = {"activation": "silu", "pooling": "average"}
"""Where ReLU or a maximum turns over, a rounding error of 1e-7 becomes a difference of 1e-4 within a few steps."""

NORMALIZED: dict[str, Any] = {
    "name": "cnn",
    "options": {"filters": [4], "units": 16, "dropout": 0, "batch_norm": True, **SMOOTH},
}
DENSE: dict[str, Any] = {"name": "mlp", "options": {"units": [32], "dropout": [0], "activation": "silu"}}

OWN: dict[str, Any] = {
    "name": "python_module",
    "options": {"file": str(Path(__file__).with_name("own_model.py"))},
}
"""As people write it: its batch normalization knows nothing of replicas."""

LANGUAGE: dict[str, Any] = {"name": "transformer_lm", "options": {"layers": 1, "width": 8, "heads": 2, "dropout": 0}}

CASES: dict[str, dict[str, Any]] = {
    "mean": _job(
        NORMALIZED,
        optimizer={"name": "momentum", "learning_rate": 0.02},
        clip={"global_norm": 1.0},
        # 359 samples to evaluate: a prime.
        validation_split=0.2,
    ),
    "sum": _job(
        OWN,
        optimizer={"name": "sgd", "learning_rate": 0.0002},
        aggregation={"method": "sum"},
        clip={"norm": 30.0},
        # 1,397 samples to train on: 11 x 127.
        validation_split=0.223,
    ),
    "local": _job(
        NORMALIZED,
        optimizer={"name": "momentum", "learning_rate": 0.02},
        # Each in a round of its own.
        aggregation={"method": "local", "micro_batches": 5},
        clip={"value": 0.05},
        validation_split=0.223,
    ),
    "weighted": _job(
        DENSE,
        optimizer={"name": "sgd", "learning_rate": 0.1},
        # One sample to evaluate, fewer than there are replicas.
        validation_split=0.0005,
        label_smoothing=0.1,
        class_weights={"0": 2.0, "3": 0.5},
        schedule={"kind": "cosine", "final": 0.1},
    ),
    "language": {
        **_job(LANGUAGE, optimizer={"name": "sgd", "learning_rate": 0.1}, validation_split=0.2),
        "dataset": {"name": "synthetic_tokens", "options": {"vocabulary": 8, "length": 6, "samples": 600}},
    },
    "local as one large batch": _job(
        DENSE,
        optimizer={"name": "adam", "learning_rate": 0.001},
        # All compiled as one.
        aggregation={"method": "local", "micro_batches": 4},
        validation_split=0.2,
    ),
}
"""Each 20 steps over several epochs, with a learning rate that moves the weights far more than rounding does."""


AGGREGATIONS = ["mean", "sum", "local"]
OF_ITS_OWN = {
    "one_device": list(CASES),
    "mirrored 3": [*AGGREGATIONS, "weighted", "local as one large batch"],
    # Language models on a mesh are mesh_optimizers.py's.
    "mesh 2x2": [*AGGREGATIONS, "weighted"],
    # Another way to add up what is a gradient in any case.
    "hierarchical 2": ["mean"],
}


def cases_of(strategy: str) -> list[str]:
    """Every aggregation under each strategy; the rest, which knows no aggregation, where it computes otherwise."""
    return OF_ITS_OWN.get(strategy, AGGREGATIONS)
