"""The file of predictions: Parquet, one row for each example that was read, in the order of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.contract.spec import JobSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def write(file: Path, spec: JobSpec, blocks: Iterable[NDArray[np.float32]]) -> int:
    """Write blocks of Predictor.run to `file` as they come; returns the number of rows. Raises OSError.

    Columns: `index` counts the rows from 0; then `class` and `probabilities` of each class; or `value` (`values` of
    several targets or of a reconstruction); or the `tokens` that follow each of the example's. Last `target`, what the
    data says, but for a reconstruction, whose target is the example itself.
    """
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    columns = _columns(spec)
    schema = pa.schema([("index", pa.int64()), *((name, kind) for name, kind, _ in columns)])
    rows = 0
    with parquet.ParquetWriter(file, schema) as writer:
        for block in blocks:
            index = pa.array(np.arange(rows, rows + len(block)))
            arrays = [_array(pick(block), kind) for _, kind, pick in columns]
            writer.write_table(pa.Table.from_arrays([index, *arrays], schema=schema))
            rows += len(block)
    return rows


Column = tuple[str, Any, Callable[[Any], Any]]
"""Name, Arrow's type, and the part of a block: [rows] or, for a list, [rows, width]."""


def _columns(spec: JobSpec) -> list[Column]:
    import pyarrow as pa

    info, task = spec.dataset_info, spec.task
    if task == "classification":
        classes = pa.list_(pa.float32(), info.outputs)
        return [
            ("class", pa.int32(), lambda block: block[:, 0]),
            ("probabilities", classes, lambda block: block[:, 1:-1]),
            ("target", pa.int32(), lambda block: block[:, -1]),
        ]
    if task == "language_model":
        length = info.shape[0]
        tokens = pa.list_(pa.int32(), length)
        return [
            ("tokens", tokens, lambda block: block[:, :length]),
            ("target", tokens, lambda block: block[:, length:]),
        ]
    if task == "reconstruction":
        values = pa.list_(pa.float32(), info.features)
        return [("values", values, lambda block: block[:, : info.features])]
    if info.targets == 1:
        return [
            ("value", pa.float32(), lambda block: block[:, 0]),
            ("target", pa.float32(), lambda block: block[:, 1]),
        ]
    several = pa.list_(pa.float32(), info.targets)
    return [
        ("values", several, lambda block: block[:, : info.targets]),
        ("target", several, lambda block: block[:, info.targets :]),
    ]


def _array(values: NDArray[Any], kind: Any) -> Any:
    """An Arrow array of the part of a block."""
    import pyarrow as pa

    if not pa.types.is_fixed_size_list(kind):
        return pa.array(values.astype(kind.to_pandas_dtype()))
    flat = values.astype(kind.value_type.to_pandas_dtype()).ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), kind.list_size)
