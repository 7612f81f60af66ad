"""The first two chapters of "Alice's Adventures in Wonderland" as characters: small enough to be part of this program.

The novel (Lewis Carroll, 1865) is in the public domain. The text was typed from memory: it is there to be learned,
not to be quoted.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays, DataError

title = "Tiny text"
summary = (
    "Language model: two chapters of Alice's Adventures in Wonderland (Carroll, 1865), character by character. Comes "
    "with Lockstep, no download."
)

FILE = Path(__file__).parent / "tiny_text.txt"
CHARACTERS = 21_472
ALPHABET = "\n !\"'(),-.:;?ABCDEFGHIJKLMNOPRSTWYZabcdefghijklmnopqrstuvwxyz"
"""Every character of the text; its place is the character's id."""
TEST_PART = 0.1


class Options(_Options):
    """How much of the text is seen at once."""

    length: int = Field(
        32,
        ge=8,
        le=1024,
        title="Length",
        description="Characters of one example: the model's context. Examples do not overlap.",
        json_schema_extra={"unit": "tokens"},
    )


def describe(options: Options) -> DatasetInfo:
    """Character ids; the last tenth of the text is the test."""
    windows = (CHARACTERS - 1) // options.length
    test = max(1, int(windows * TEST_PART))
    return DatasetInfo(
        task="language_model",
        shape=(options.length,),
        tokens=len(ALPHABET),
        samples=windows - test,
        test_samples=test,
    )


def load(options: Options, home: Path) -> Arrays:
    """Features and targets int32 [samples, length], the targets one character on. Raises DataError."""
    import numpy as np

    try:
        text = FILE.read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise DataError(f"{FILE} cannot be read ({error}). Install Lockstep again.") from error
    if len(text) != CHARACTERS or not set(text) <= set(ALPHABET):
        raise DataError(f"{FILE} is not the text that came with Lockstep. Install it again.")
    place = {character: index for index, character in enumerate(ALPHABET)}
    ids = np.array([place[character] for character in text], np.int32)
    info = describe(options)
    count = info.samples + info.test_samples
    features, targets = (ids[first : first + count * options.length].reshape(count, -1) for first in (0, 1))
    return Arrays(features[: info.samples], targets[: info.samples], features[info.samples :], targets[info.samples :])
