"""Looks at CSV and Parquet: the type of each column, decided over all rows; what is missing; how large numbers are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workers.contract.files.facts import MOST_VALUES, Column, Facts, Part, refuse
from workers.contract.files.parts import digest, files_of
from workers.contract.files.reading import csv_blocks, csv_header, open_parquet, parquet_blocks

TRUTHS = {"true", "false", "yes", "no"}
"""In any letters; 0 and 1 are numbers."""
LONGEST_VALUE = 200
WITH_COMMA = r"^\s*[+-]?[0-9]+,[0-9]+\s*$"
EXACT = 2**53
"""Whole numbers below this are told apart as float64."""


def inspect_csv(path: Path) -> Facts:
    """Facts of a CSV file, or of all *.csv of a folder. Raises SpecInvalid."""
    files = files_of(path, (".csv", ".tsv"))
    return _inspect("csv", files, lambda file: csv_header(file)[0], csv_blocks)


def inspect_parquet(path: Path) -> Facts:
    """Facts of a Parquet file, or of all *.parquet of a folder. Raises SpecInvalid."""
    files = files_of(path, (".parquet",))
    return _inspect("parquet", files, lambda file: list(open_parquet(file).schema_arrow.names), parquet_blocks)


def _inspect(
    kind: Any, files: list[Path], names_of: Callable[[Path], list[str]], blocks: Callable[[Path], Iterator[Any]]
) -> Facts:
    names = names_of(files[0])
    seen = [_Seen(name) for name in names]
    parts: list[Part] = []
    for file in files:
        if names_of(file) != names:
            refuse("file", f"has other columns than {files[0].name}", file.name, "Give all files the same columns")
        rows = whole = 0
        for block in blocks(file):
            rows += block.num_rows
            whole += _learn(seen, block)
        parts.append(Part(name=file.name, samples=rows, complete=whole, bytes=file.stat().st_size))
    samples = sum(part.samples for part in parts)
    if not samples:
        refuse("file", "holds no row below its first line", files[0].name, "Give a file with data in it")
    return Facts(
        kind=kind,
        samples=samples,
        bytes=sum(part.bytes for part in parts),
        sha256=digest(files),
        parts=tuple(parts),
        columns=tuple(each.column() for each in seen),
    )


def _learn(seen: list[_Seen], block: Any) -> int:
    """Take in a block; the number of its rows in which nothing is missing."""
    import numpy as np

    whole = np.ones(block.num_rows, bool)
    for each, column in zip(seen, block.columns, strict=True):
        each.learn(column)
        if column.null_count:
            whole &= np.asarray(column.is_valid())
    return int(whole.sum())


class _Seen:
    """What is known of one column so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._missing = self._count = self._rows = 0
        self._values: set[str] | None = set()
        self._numeric = self._boolean = self._comma = True
        self._mean = self._squares = 0.0

    def learn(self, cells: Any) -> None:
        """Take in texts; the mean and the squares by Chan et al. (1979), which lose no digits."""
        from pyarrow import compute

        self._missing += cells.null_count
        self._rows += len(cells)
        cells = compute.drop_null(cells)
        if not len(cells):
            return
        if self._values is not None:
            self._values |= set(compute.unique(cells).to_pylist())
            self._boolean = self._boolean and all(value.strip().lower() in TRUTHS for value in self._values)
            if len(self._values) > MOST_VALUES or any(len(value) > LONGEST_VALUE for value in self._values):
                self._values, self._boolean = None, False
        if self._numeric:
            self._learn_numbers(cells)
        self._comma = self._comma and compute.all(compute.match_substring_regex(cells, WITH_COMMA)).as_py()

    def _learn_numbers(self, cells: Any) -> None:
        import numpy as np

        found = numbers(cells)
        if found is None:
            self._numeric = False
            return
        if not np.isfinite(found).all():
            refuse("file", f"holds an infinite number in its column {self._name}", None, "Replace or remove it")
        total = self._count + len(found)
        mean = float(found.mean())
        apart = mean - self._mean
        self._squares += float(np.square(found - mean).sum()) + apart * apart * self._count * len(found) / total
        self._mean += apart * len(found) / total
        self._count = total

    def column(self) -> Column:
        """What it turned out to be. A column without any value is text: nothing can be learnt from it."""
        if self._numeric and self._count:
            std = math.sqrt(self._squares / self._count)
            return Column(
                name=self._name,
                type="number",
                values=self._whole_numbers(),
                missing=self._missing,
                mean=self._mean,
                std=std if std > 0 and math.isfinite(std) else 1.0,
            )
        if self._comma and self._missing < self._rows:
            remedy = "Write them with a decimal point and nothing between thousands, such as 1234.5"
            refuse("file", f"holds numbers with a comma in its column {self._name}", None, remedy)
        if not self._values:
            return Column(name=self._name, type="text", missing=self._missing)
        if self._boolean:
            return Column(name=self._name, type="boolean", values=("false", "true"), missing=self._missing)
        if any("\0" in value for value in self._values):
            refuse("file", f"holds a NUL character in its column {self._name}", None, "Remove it")
        return Column(name=self._name, type="category", values=tuple(sorted(self._values)), missing=self._missing)

    def _whole_numbers(self) -> tuple[str, ...]:
        values = {float(value) for value in self._values or ()}
        if any(value != int(value) or abs(value) >= EXACT for value in values):
            return ()
        return tuple(str(int(value)) for value in sorted(values))


def numbers(cells: Any) -> Any:
    """Texts as float64 [cells] (NaN where missing); None when one of them is no number."""
    import pyarrow as pa
    from pyarrow import compute

    try:
        found = compute.cast(compute.utf8_trim_whitespace(cells), pa.float64())
    except pa.ArrowInvalid:
        return None
    return found.to_numpy(zero_copy_only=False)
