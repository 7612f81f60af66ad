"""Tables as columns: one Parquet file, or a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workers.contract.data import DatasetInfo
from workers.contract.files.facts import Facts
from workers.contract.files.reading import open_parquet, parquet_blocks
from workers.contract.files.tables import inspect_parquet
from workers.training.arrays import Arrays
from workers.training.datasets._files import paths_of
from workers.training.datasets._tables import Plan, TableOptions, TableSource, describe_table, file_pieces, load_table

title = "Parquet"
summary = "A table in a Parquet file: numbers, categories and booleans, one column of which is the target."
by_hand = True


class Options(TableOptions):
    """Which column is learnt from which others."""


def inspect(path: Path, options: Options) -> Facts:
    """What the file holds. Raises SpecInvalid."""
    return inspect_parquet(path)


def describe(options: Options) -> DatasetInfo:
    """As the facts say. Raises SpecInvalid."""
    return describe_table(options)


def stream(options: Options) -> TableSource:
    """Its rows, read while training, row group by row group. Raises DataError."""
    # How many rows a group has left once incomplete ones are dropped is written nowhere.
    pieces = file_pieces(options, parquet_blocks) if options.missing == "drop" else _groups(options)
    return TableSource(options, pieces, plan=Plan(options))


def load(options: Options, home: Path) -> Arrays:
    """All rows. Raises DataError."""
    return load_table(stream(options))


def _groups(options: Options) -> list[Any]:
    from workers.training.streams.streaming import Piece

    found: list[Any] = []
    for number, file in enumerate(paths_of(options)):
        metadata = open_parquet(file).metadata
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            found.append((Piece(number, rows), lambda file=file, group=group: parquet_blocks(file, [group])))
    return found
