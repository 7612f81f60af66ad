"""Plain text, cut into windows: a language model learns which character or byte comes next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from workers.contract.data import DatasetInfo
from workers.contract.files.facts import MOST_CHARACTERS, Facts, refuse
from workers.contract.files.texts import inspect_text
from workers.training.arrays import Arrays, DataError
from workers.training.datasets._files import FileOptions, facts_of, paths_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

title = "Text"
summary = "A text file (UTF-8) for a language model. Loaded whole; its last tenth is the test."
by_hand = True

BYTES = 256
TEST_PART = 0.1


class Options(FileOptions):
    """How the text is cut."""

    in_memory: Literal["auto", "always"] = Field(
        "auto",
        title="In memory",
        description="Always; a text is small.",
        json_schema_extra={"advanced": True},
    )
    length: int = Field(
        64,
        ge=8,
        le=4096,
        title="Length",
        description="Tokens of one example: the model's context. Examples do not overlap.",
        json_schema_extra={"unit": "tokens"},
    )
    tokens: Literal["characters", "bytes"] = Field(
        "characters",
        title="Tokens",
        description="Each different character of the file, or each of the 256 bytes, which fits any language.",
    )


def inspect(path: Path, options: Options) -> Facts:
    """What the file holds. Raises SpecInvalid."""
    return inspect_text(path, options.length)


def describe(options: Options) -> DatasetInfo:
    """Windows of tokens; the last tenth of the text is the test. Raises SpecInvalid."""
    facts = facts_of(options)
    if options.tokens == "characters" and not facts.alphabet:
        message = f"would be more than {MOST_CHARACTERS:,} different ones"
        refuse("tokens", message, options.tokens, "Use bytes")
    count = facts.samples if options.tokens == "characters" else facts.bytes
    windows = (count - 1) // options.length
    if windows < 1:
        remedy = f"Use at most {count - 1:,}, or a longer text"
        refuse("length", f"is more than the text has: {count:,} {options.tokens}", options.length, remedy)
    test = int(windows * TEST_PART)
    return DatasetInfo(
        task="language_model",
        shape=(options.length,),
        tokens=len(facts.alphabet) if options.tokens == "characters" else BYTES,
        samples=windows - test,
        test_samples=test,
    )


def load(options: Options, home: Path) -> Arrays:
    """Features and targets int32 [samples, length], the targets one token on. Raises DataError."""
    [file] = paths_of(options)
    ids = _ids(file, facts_of(options).alphabet if options.tokens == "characters" else "")
    info = describe(options)
    count = info.samples + info.test_samples
    if len(ids) <= count * options.length:
        raise DataError(f"{file} is shorter than when it was looked at; submit the job with the new file.")
    features, targets = (ids[first : first + count * options.length].reshape(count, -1) for first in (0, 1))
    training = features[: info.samples], targets[: info.samples]
    if not info.test_samples:
        return Arrays(*training)
    return Arrays(*training, features[info.samples :], targets[info.samples :])


def _ids(file: Path, alphabet: str) -> NDArray[Any]:
    """Int32 [tokens]: a character's place in the alphabet, or without one the bytes."""
    import numpy as np

    content = file.read_bytes()
    if not alphabet:
        return np.frombuffer(content, np.uint8).astype(np.int32)
    try:
        codes = np.frombuffer(content.decode().encode("utf-32-le"), "<u4")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is no longer UTF-8 text ({error}); submit the job with the new file.") from error
    places = np.full(0x110000, -1, np.int32)
    places[[ord(character) for character in alphabet]] = np.arange(len(alphabet))
    ids: NDArray[Any] = places[codes]
    if ids.size and ids.min() < 0:
        raise DataError(f"{file} has characters that it had not when looked at; submit the job with the new file.")
    return ids
