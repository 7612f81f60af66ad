"""Tables as text: one CSV file with a header, or a folder of them."""

from __future__ import annotations

from pathlib import Path

from workers.contract.data import DatasetInfo
from workers.contract.files.facts import Facts
from workers.contract.files.reading import csv_blocks
from workers.contract.files.tables import inspect_csv
from workers.training.arrays import Arrays
from workers.training.datasets._tables import Plan, TableOptions, TableSource, describe_table, file_pieces, load_table

title = "CSV"
summary = "A table in a text file with a header: numbers, categories and booleans, one column of which is the target."
by_hand = True


class Options(TableOptions):
    """Which column is learnt from which others."""


def inspect(path: Path, options: Options) -> Facts:
    """What the file holds. Raises SpecInvalid."""
    return inspect_csv(path)


def describe(options: Options) -> DatasetInfo:
    """As the facts say. Raises SpecInvalid."""
    return describe_table(options)


def stream(options: Options) -> TableSource:
    """Its rows, read while training. Raises DataError."""
    return TableSource(options, file_pieces(options, csv_blocks), plan=Plan(options))


def load(options: Options, home: Path) -> Arrays:
    """All rows. Raises DataError."""
    return load_table(stream(options))
