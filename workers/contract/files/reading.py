"""Reads tables block by block, each cell as text: what a column is was decided over all of it, not over its start."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.contract.files.facts import refuse

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 2**18
BLOCK_ROWS = 4_096
DECIMAL = r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$"
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "?")
SEPARATORS = ",;\t|"
MOST_COLUMNS = 2_000
MOST_NAME = 200
MOST_LINE = 2**20


def csv_header(file: Path) -> tuple[list[str], str]:
    """Names of the columns and what separates them: comma, semicolon, tab or bar. Raises SpecInvalid."""
    with file.open("rb") as stream:
        raw = stream.readline(MOST_LINE + 1)
    if len(raw) > MOST_LINE or b"\0" in raw:
        refuse("file", "is not a CSV file: its first line is no line of text", file.name, "Give a text file")
    try:
        line = raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        refuse("file", "is not UTF-8 text", file.name, "Save the file as UTF-8")
    if line.count('"') % 2:
        refuse(
            "file", "has a quotation mark in its first line that is not closed there", line, "Name columns in one line"
        )
    separator = max(SEPARATORS, key=line.count)
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        refuse("file", "ends its lines as old Macs did", file.name, "Save it with line ends of Unix or Windows")
    if len(names) < 2:
        refuse("file", "has fewer than two columns in its first line", line, "Begin with a line of column names")
    # Spreadsheets and pandas leave the name of a column of row numbers away.
    names = [name or f"column {place}" for place, name in enumerate(names, 1)]
    check_names(names, file)
    _refuse_numbers(names, file)
    return names, separator


def _refuse_numbers(names: list[str], file: Path) -> None:
    """Years and places may be called by whole numbers; 5.1 is a value."""
    number = next((name for name in names if re.fullmatch(r"[+-]?\d*[.,]\d+(e[+-]?\d+)?", name, re.IGNORECASE)), None)
    if number is not None:
        what = f"has the number {number} in its first line, where the columns' names belong"
        refuse("file", what, file.name, "Add a first line that names each column")


def check_names(names: list[str], file: Path) -> None:
    """Raises SpecInvalid unless every column has a name of its own."""
    if len(names) < 2:
        refuse("file", "has fewer than two columns in its first line", file.name, "Separate columns by commas")
    if len(names) > MOST_COLUMNS:
        refuse("file", f"has {len(names):,} columns", file.name, f"Keep at most {MOST_COLUMNS:,}")
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        refuse("file", f"has the column {doubled} twice", file.name, "Give each column a name of its own")
    wrong = next((name for name in names if not 0 < len(name) <= MOST_NAME), None)
    if wrong is not None:
        refuse("file", "has a column's name that cannot be kept", wrong, f"Give it 1 to {MOST_NAME} letters")


def csv_blocks(file: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file, in order, every column as text. Raises SpecInvalid."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    names, separator = csv_header(file)
    try:
        reader = arrow.open_csv(
            file,
            read_options=arrow.ReadOptions(
                column_names=names, skip_rows=1, block_size=BLOCK_BYTES, use_threads=False, encoding="utf8"
            ),
            parse_options=arrow.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=MISSING, strings_can_be_null=True
            ),
        )
        for block in reader:
            yield _with_points(block) if separator == ";" else block
    except pa.ArrowInvalid as error:
        _refuse_csv(file, str(error))


def _with_points(block: pa.RecordBatch) -> pa.RecordBatch:
    """Where semicolons separate columns, a comma separates decimals."""
    import pyarrow as pa
    from pyarrow import compute

    points = [compute.replace_substring_regex(cells, DECIMAL, r"\1.\2") for cells in block.columns]
    return pa.RecordBatch.from_arrays(points, block.schema.names)


def _refuse_csv(file: Path, said: str) -> None:
    if "Empty CSV" in said or "Could not skip" in said:
        refuse("file", "holds no row below its first line", file.name, "Give a file with data in it")
    if "UTF8" in said.upper():
        refuse("file", "is not UTF-8 text", file.name, "Save the file as UTF-8")
    if "Expected" in said and "columns" in said:
        fault = said[said.index("Expected") :].splitlines()[0][:160]
        refuse("file", f"has a row of another length than its first line ({fault})", file.name, "Mend that row")
    if "straddling" in said:
        message = "has a row that is too long to read, or a quotation mark that is never closed"
        refuse("file", message, file.name, "Mend or remove that row")
    fault = said.splitlines()[0][:160]
    refuse("file", f"cannot be read as CSV ({fault})", file.name, "Save it as CSV with a header, UTF-8")


def open_parquet(file: Path) -> Any:
    """A pyarrow.parquet.ParquetFile. Raises SpecInvalid."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(file)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        refuse("file", f"is not a Parquet file or is torn ({_first(error)})", file.name, "Write the file again")
    names = opened.schema_arrow.names
    check_names(list(names), file)
    for field in opened.schema_arrow:
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            refuse(
                "file", f"has {field.type} in its column {field.name}", file.name, "Keep numbers, texts and booleans"
            )
    return opened


def parquet_blocks(file: Path, groups: list[int] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file or of some of its row groups, in order, every column as text. Raises SpecInvalid."""
    import pyarrow as pa

    opened = open_parquet(file)
    try:
        for batch in opened.iter_batches(BLOCK_ROWS, row_groups=groups, use_threads=False):
            yield pa.RecordBatch.from_arrays([_as_text(column) for column in batch.columns], batch.schema.names)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        refuse("file", f"is torn ({_first(error)})", file.name, "Write the file again")
    finally:
        opened.close()


def _as_text(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    text = compute.cast(column, pa.string()) if not pa.types.is_string(column.type) else column
    return compute.if_else(compute.is_in(text, pa.array(MISSING)), pa.scalar(None, pa.string()), text)


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
