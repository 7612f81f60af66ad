"""Reads the pickles that old datasets are made of, without running what a pickle may hold."""

from __future__ import annotations

import pickle
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
}
"""All that an array needs; plain lists, numbers and bytes need nothing."""


class _Arrays(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no data")
        return super().find_class(module, name)


def load(stream: IO[bytes]) -> Any:
    """What the pickle holds; text of Python 2 comes as bytes. Raises pickle.UnpicklingError for all but plain data."""
    return _Arrays(stream, encoding="bytes").load()


def load_objects(stream: IO[bytes]) -> NDArray[Any]:
    """An .npy file, also of Python objects such as lists. Raises ValueError or pickle.UnpicklingError."""
    import numpy as np

    read_header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(stream)[0]
    if version not in read_header:
        raise ValueError(f"version {version} of the format is not known")
    shape, _, kind = read_header[version](stream)
    if kind.hasobject:
        return np.asarray(load(stream), dtype=object)
    return np.frombuffer(stream.read(), kind).reshape(shape)
