"""What was found in a file when it was looked at: all that a form, a spec and a training host need to know of it."""

from __future__ import annotations

from typing import Literal, NoReturn

from pydantic import Field

from workers.contract.base import Strict
from workers.contract.problems import Problem, SpecInvalid

Kind = Literal["csv", "parquet", "npz", "image_folder", "tfrecord", "text"]
MOST_VALUES = 256
"""Of a column that is a category; one with more is text."""
MOST_CLASSES = 1_000
MOST_FILES = 4_096
MOST_LABELS = 100_000
MOST_CHARACTERS = 8_192
"""Different ones of a text; one with more is read as bytes."""


class Column(Strict):
    """One column of a table.

    `values` are the different ones in their order, of a category or of whole numbers that are few; `mean` and `std` are
    of a number's cells over the whole file. A column of type text has more than MOST_VALUES and is not trained on.
    """

    name: str = Field(min_length=1, max_length=200)
    type: Literal["number", "category", "boolean", "text"]
    values: tuple[str, ...] = Field((), max_length=MOST_VALUES)
    missing: int = Field(0, ge=0)
    mean: float = Field(0.0, allow_inf_nan=False)
    std: float = Field(1.0, gt=0, allow_inf_nan=False)


class Part(Strict):
    """One file of those that a dataset lies in; `complete` counts the rows of a table in which no cell is missing."""

    name: str
    samples: int = Field(ge=0)
    complete: int = Field(0, ge=0)
    bytes: int = Field(ge=0)


class Feature(Strict):
    """One array of an NPZ file, with its whole shape, or one feature of TFRecords, with one example's.

    `low` and `high` are the least and the greatest of whole numbers that may be labels: one for each example. A feature
    whose length changes from example to example is ragged. `byte` numbers are 0 to 255.
    """

    name: str
    type: Literal["number", "integer", "byte", "bytes", "image", "ragged"]
    shape: tuple[int, ...] = ()
    low: int | None = None
    high: int | None = None


class Facts(Strict):
    """What a file or a folder of files holds. `sha256` is of the bytes of all files, in the order of `parts`.

    `samples` are rows, examples, pictures, or the characters of a text, whose different ones are its `alphabet`, in
    order (empty where they are more than MOST_CHARACTERS). `classes` are the names of an image folder's, in the order
    of their numbers; `shape` is [height, width, channels] of its first picture, or of the first among TFRecords.
    """

    kind: Kind
    samples: int = Field(ge=1)
    bytes: int = Field(ge=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    parts: tuple[Part, ...] = Field(min_length=1, max_length=MOST_FILES)
    columns: tuple[Column, ...] = ()
    features: tuple[Feature, ...] = ()
    classes: tuple[str, ...] = Field((), max_length=MOST_CLASSES)
    shape: tuple[int, ...] = ()
    alphabet: str = Field("", max_length=MOST_CHARACTERS)

    def feature(self, name: str, field: str) -> Feature:
        """The array or feature of that name. Raises SpecInvalid naming those that there are."""
        found = next((feature for feature in self.features if feature.name == name), None)
        if found is None:
            known = ", ".join(feature.name for feature in self.features)
            refuse(field, "is not in the file", name, f"There are: {known}")
        return found

    def column(self, name: str, field: str = "target") -> Column:
        """The column of that name. Raises SpecInvalid naming those that there are; `field` is who asked for it."""
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            known = ", ".join(column.name for column in self.columns)
            refuse(field, "is not a column of the file", name, f"Columns: {known}")
        return found


def labels_of(feature: Feature, field: str) -> int:
    """How many classes whole numbers from 0 on mean. Raises SpecInvalid."""
    if feature.low is None or feature.high is None:
        refuse(field, "holds no whole number for each example, so it tells no class", feature.name, "Choose another")
    if feature.low < 0:
        refuse(field, f"holds the label {feature.low}, and classes count from 0", feature.name, "Number them from 0")
    if not 1 <= feature.high < MOST_LABELS:
        refuse(field, f"holds labels up to {feature.high:,}", feature.name, f"Use 2 to {MOST_LABELS:,} classes")
    return feature.high + 1


def refuse(field: str, message: str, value: object, remedy: str) -> NoReturn:
    """Raise SpecInvalid with one problem; `field` is a dataset's option."""
    raise SpecInvalid([Problem(field, message, value, remedy)])
