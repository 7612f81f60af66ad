"""Rows of a table as numbers: standardised numbers, categories one-hot or by number, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from workers.contract.data import DatasetInfo
from workers.contract.files.facts import Column, Facts, refuse
from workers.contract.files.tables import numbers
from workers.contract.problems import SpecInvalid
from workers.training.arrays import Arrays, DataError
from workers.training.datasets._files import FileOptions, facts_of, paths_of, streamed_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.streams.streaming import Piece, Rows


class TableOptions(FileOptions):
    """Which column is learnt from which others."""

    target: str = Field(
        min_length=1, max_length=200, title="Target", description="The column that the model learns to tell."
    )
    ignore: tuple[str, ...] = Field(
        (), max_length=2_000, title="Ignore", description="Columns that the model is not shown."
    )
    task: Literal["auto", "classification", "regression"] = Field(
        "auto", title="Task", description="Auto: regression when the target is a number, else classification."
    )
    categories: Literal["one_hot", "codes"] = Field(
        "one_hot",
        title="Categories",
        description="A category as one value for each of its kinds, or as its number, as wide_and_deep takes it.",
    )
    missing: Literal["refuse", "drop", "mean"] = Field(
        "refuse",
        title="Missing values",
        description="Refuse the file, drop rows in which any cell is missing, or put the mean (no kind of a category).",
    )


def describe_table(options: TableOptions) -> DatasetInfo:
    """Shape [values of one row]. Raises SpecInvalid for columns that are not there or cannot be used."""
    facts, plan = facts_of(options), Plan(options)
    samples = sum(part.complete for part in facts.parts) if options.missing == "drop" else facts.samples
    if not samples:
        refuse("missing", "would drop every row", "drop", "Use mean, or remove the empty column from the file")
    return DatasetInfo(
        task="regression" if plan.classes is None else "classification",
        shape=(plan.width,),
        classes=len(plan.classes) if plan.classes is not None else None,
        categories=plan.categories,
        samples=samples,
        files=streamed_files(options, samples * (plan.width + 1) * 4),
    )


class Plan:
    """How each column becomes numbers, decided by options and facts."""

    def __init__(self, options: TableOptions) -> None:
        """Raises SpecInvalid."""
        self._facts = facts_of(options)
        self._options = options
        self.target = self._facts.column(options.target)
        for name in options.ignore:
            self._facts.column(name, "ignore")
        shown = [c for c in self._facts.columns if c.name not in {options.target, *options.ignore} and c.type != "text"]
        # Numbers of categories stand first, so that a model can tell them from the rest.
        coded = [c for c in shown if c.type == "category"] if options.categories == "codes" else []
        self.columns = [*coded, *(column for column in shown if column not in coded)]
        if not self.columns:
            refuse("ignore", "leaves no column to learn from", list(options.ignore), "Ignore fewer columns")
        self.width = sum(self._width(column) for column in self.columns)
        self.classes = self._classes()
        self._check_missing()

    def _width(self, column: Column) -> int:
        return len(column.values) if column.type == "category" and self._options.categories == "one_hot" else 1

    @property
    def categories(self) -> tuple[int, ...]:
        """Ids of each coded column, one more where a missing cell has its own."""
        if self._options.categories != "codes":
            return ()
        holes = self._options.missing == "mean"
        coded = (column for column in self.columns if column.type == "category")
        return tuple(len(column.values) + (holes and column.missing > 0) for column in coded)

    def _classes(self) -> tuple[str, ...] | None:
        """The target's values, in the order of their numbers; None for regression."""
        target, task = self.target, self._options.task
        if target.type == "text":
            refuse("target", "has too many different values to be classes", target.name, "Choose another column")
        if task == "regression" or (task == "auto" and target.type == "number"):
            if target.type != "number":
                refuse("task", f"needs a number to tell, and {target.name} is a {target.type}", task, "Use auto")
            return None
        if len(target.values) < 2:
            what = "has one value only" if target.values else "holds numbers that are not whole, or too many"
            refuse("target", what, target.name, "Choose another column, or task regression")
        return target.values

    def _check_missing(self) -> None:
        if self._options.missing == "drop":
            return
        if self.target.missing:
            message = f"has no value in {self.target.missing:,} rows"
            refuse("target", message, self.target.name, "Set missing to drop, or fill them in")
        holes = [f"{column.name} ({column.missing:,})" for column in self.columns if column.missing]
        if holes and self._options.missing == "refuse":
            refuse("missing", f"some rows have no value in {', '.join(holes[:8])}", "refuse", "Use drop or mean")

    def numbers_of(self, block: Any) -> Rows:
        """Features float32 [rows, width] and targets of a block of texts, incomplete rows dropped where asked."""
        import numpy as np

        if self._options.missing == "drop":
            whole = np.ones(block.num_rows, bool)
            for column in block.columns:
                whole &= np.asarray(column.is_valid())
            block = block.filter(whole)
        features = np.empty((block.num_rows, self.width), np.float32)
        start = 0
        for column in self.columns:
            width = self._width(column)
            features[:, start : start + width] = self._values(column, block.column(column.name), width)
            start += width
        return features, self._targets(block.column(self.target.name))

    def _values(self, column: Column, cells: Any, width: int) -> NDArray[Any]:
        """Float32 [rows, width]."""
        import numpy as np

        if column.type == "number":
            values = (_parsed(column, cells) - column.mean) / column.std
            standard: NDArray[Any] = np.nan_to_num(values, nan=0.0).astype(np.float32)
            return standard[:, None]
        if column.type == "boolean":
            return _truths(cells)[:, None]
        codes = _codes(column, cells)
        found: NDArray[Any]
        if width == 1 and self._options.categories == "codes":
            found = np.where(codes < 0, len(column.values), codes)[:, None]
        else:
            found = codes[:, None] == np.arange(width)
        return found.astype(np.float32)

    def _targets(self, cells: Any) -> NDArray[Any]:
        """Int32 [rows], or float32 [rows, 1] for regression, in the file's own unit."""
        import numpy as np

        if self.classes is None:
            return _parsed(self.target, cells).astype(np.float32)[:, None]
        if self.target.type == "boolean":
            return _truths(cells).astype(np.int32)
        if self.target.type == "number":
            known = np.array([float(value) for value in self.classes])
            return np.searchsorted(known, _parsed(self.target, cells)).astype(np.int32)
        return _codes(self.target, cells).astype(np.int32)


def _parsed(column: Column, cells: Any) -> NDArray[Any]:
    found = numbers(cells)
    if found is None:
        raise DataError(f"The column {column.name} no longer holds numbers only; submit the job with the new file.")
    parsed: NDArray[Any] = found
    return parsed


def _truths(cells: Any) -> NDArray[Any]:
    """Float32 [rows]: 1, 0, or a half where missing."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute

    said = compute.utf8_lower(compute.utf8_trim_whitespace(cells))
    true = compute.is_in(said, pa.array(["true", "yes"])).to_numpy(zero_copy_only=False)
    return np.where(np.asarray(cells.is_valid()), true, 0.5).astype(np.float32)


def _codes(column: Column, cells: Any) -> NDArray[Any]:
    """Int64 [rows]: the number of each value, -1 where missing."""
    import pyarrow as pa
    from pyarrow import compute

    found = compute.index_in(cells, pa.array(column.values, pa.string()))
    codes: NDArray[Any] = compute.fill_null(found, -1).to_numpy(zero_copy_only=False).astype("int64")
    return codes


class TableSource:
    """Rows of tables on disk (streaming.Source): one piece a file, or what `pieces` says, such as row groups."""

    scale = 1.0

    def __init__(
        self, options: TableOptions, pieces: list[tuple[Piece, Callable[[], Iterator[Any]]]], *, plan: Plan
    ) -> None:
        self._plan = plan
        self.pieces = [piece for piece, _ in pieces]
        self._open = [blocks for _, blocks in pieces]
        self.row_bytes = (plan.width + 1) * 4

    def read(self, piece: int) -> Iterator[Rows]:
        """Raises DataError."""
        try:
            for block in self._open[piece]():
                yield self._plan.numbers_of(block)
        except SpecInvalid as error:
            raise DataError(f"The data cannot be read any more: {error}.") from error

    def decode(self, rows: Rows) -> Rows:
        """They are numbers already."""
        return rows


def file_pieces(options: TableOptions, blocks: Callable[[Path], Iterator[Any]]) -> list[Any]:
    """A piece for each file."""
    from workers.training.streams.streaming import Piece

    facts: Facts = facts_of(options)
    dropped = options.missing == "drop"
    counted = [part.complete if dropped else part.samples for part in facts.parts]
    files = list(enumerate(paths_of(options)))
    return [(Piece(number, counted[number]), lambda file=file: blocks(file)) for number, file in files]


def load_table(source: TableSource) -> Arrays:
    """All rows at once."""
    import numpy as np

    blocks = [rows for piece in range(len(source.pieces)) for rows in source.read(piece)]
    return Arrays(np.concatenate([each for each, _ in blocks]), np.concatenate([each for _, each in blocks]))
