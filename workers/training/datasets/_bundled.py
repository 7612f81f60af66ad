"""The tables that come with scikit-learn, found without importing it, which would cost a second of every start."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.training.arrays import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

REMEDY = "Install scikit-learn with the worker's requirements."


def find(name: str) -> Path | None:
    """The file of that name among scikit-learn's data, None where there is none."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / "datasets" / "data" / name
    return file if file.exists() else None


def missing(name: str) -> str | None:
    """Why this host has no such file, for a dataset's `probe`; None where it has."""
    return None if find(name) else f"scikit-learn's {name} is not on this host. {REMEDY}"


def table(name: str, *, separator: str | None = ",", heads: int = 0) -> NDArray[Any]:
    """The file's rows without the first `heads` lines, float64 [rows, columns]. Raises DataError."""
    import numpy as np

    file = find(name)
    if file is None:
        raise DataError(f"scikit-learn's {name} is not on this host. {REMEDY}")
    try:
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
            rows: NDArray[Any] = np.loadtxt(lines, delimiter=separator, skiprows=heads, ndmin=2)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{file} cannot be read ({error}). {REMEDY}") from error
    return rows


def standardized(values: NDArray[Any]) -> NDArray[Any]:
    """Each column with mean 0 and standard deviation 1 over all rows, float32 [rows, columns]."""
    import numpy as np

    scaled: NDArray[Any] = ((values - values.mean(0)) / values.std(0)).astype(np.float32)
    return scaled
