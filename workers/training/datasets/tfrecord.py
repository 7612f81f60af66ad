"""TensorFlow's own files of examples, with a map from their features to what a model is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.contract.files.facts import Facts, Feature, labels_of, refuse
from workers.contract.files.records import inspect_records
from workers.training.arrays import Arrays, DataError
from workers.training.datasets._files import FileOptions, facts_of, paths_of, streamed_files
from workers.training.datasets._pictures import decoded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.streams.streaming import Rows

title = "TFRecord"
summary = "Files of tf.train.Example: numbers, raw bytes or encoded pictures, and a label or numbers to tell."
by_hand = True

BATCH = 512
Size = Annotated[int, Field(ge=1, le=100_000_000)]


class Mapped(_Options):
    """How one feature of the examples becomes numbers."""

    type: Literal["number", "bytes", "image"] = Field(
        title="Type", description="Numbers as they are, raw bytes from 0 to 255, or an encoded picture."
    )
    shape: tuple[Size, ...] = Field(
        (), max_length=4, title="Shape", description="Of one example; [height, width, channels] of a picture."
    )


class Options(FileOptions):
    """Which features are shown to the model, and which one it learns to tell."""

    target: str = Field(
        "",
        max_length=200,
        title="Target",
        description="The feature that the model learns to tell; empty takes label, else the last single number, "
        "a whole one where there is any.",
    )
    features: dict[str, Mapped] = Field(
        default_factory=dict,
        max_length=2_000,
        title="Features",
        description="The feature map, such as {image: {type: image, shape: [32, 32, 3]}}. Several ones of numbers are "
        "put together in their order; empty takes every feature but the target.",
    )


def inspect(path: Path, options: Options) -> Facts:
    """What the files hold. Raises SpecInvalid."""
    return inspect_records(path)


def describe(options: Options) -> DatasetInfo:
    """As feature map and facts say. Raises SpecInvalid."""
    facts, mapped = facts_of(options), _mapped(options)
    target = _target(options)
    label = target.type == "integer" and target.low is not None
    [first, *others] = mapped.values()
    shape = (sum(math.prod(each.shape) for each in mapped.values()),) if others else first.shape or (1,)
    width = 1 if first.type in {"image", "bytes"} else 4
    return DatasetInfo(
        task="classification" if label else "regression",
        shape=shape,
        classes=labels_of(target, "target") if label else None,
        targets=1 if label else math.prod(target.shape),
        samples=facts.samples,
        bytes_per_value=width,
        files=streamed_files(options, facts.samples * math.prod(shape) * width),
    )


def stream(options: Options) -> RecordSource:
    """The examples, read while training. Raises DataError."""
    return RecordSource(options)


def load(options: Options, home: Path) -> Arrays:
    """All examples at once. Raises DataError."""
    import numpy as np

    source = RecordSource(options)
    pairs = [source.decode(rows) for piece in range(len(source.pieces)) for rows in source.read(piece)]
    features, targets = (np.concatenate([pair[place] for pair in pairs]) for place in (0, 1))
    return Arrays(features, targets, scale=source.scale)


def _target(options: Options) -> Feature:
    facts = facts_of(options)
    target = facts.feature(_target_name(options, facts), "target")
    if target.type not in {"number", "integer"}:
        message = "changes its length or is not in every example" if target.type == "ragged" else "is no number"
        refuse("target", message, target.name, "Choose another feature")
    return target


def _target_name(options: Options, facts: Facts) -> str:
    single = [feature for feature in facts.features if feature.type in {"number", "integer"} and not feature.shape]
    names = [each.name for each in sorted(single, key=lambda each: (each.name == "label", each.low is not None))]
    return options.target or next(reversed(names), "label")


def _mapped(options: Options) -> dict[str, Mapped]:
    """The feature map, its shapes filled in; alone unless all are of numbers. Raises SpecInvalid."""
    facts = facts_of(options)
    target = _target_name(options, facts)
    given = options.features or {each.name: _by_itself(each) for each in facts.features if each.name != target}
    if not given:
        refuse("features", "would be none: the target is all that there is", target, "Choose another target")
    if target in given:
        refuse("features", "has the target in it", target, "Take it out")
    found = {name: _filled(facts, name, mapped) for name, mapped in given.items()}
    if len(found) > 1 and any(each.type != "number" for each in found.values()):
        refuse("features", "has a picture or bytes beside others", list(found), "Map that one alone")
    return found


def _by_itself(feature: Feature) -> Mapped:
    if feature.type == "ragged":
        what = f"{feature.name} changes its length or is not in every example"
        refuse("features", what, None, "Map the other features by name")
    if feature.type == "bytes":
        refuse("features", f"{feature.name} is bytes", None, f"Map it: {feature.name}: {{type: bytes, shape: [...]}}")
    return Mapped(type="image" if feature.type == "image" else "number")


def _filled(facts: Facts, name: str, mapped: Mapped) -> Mapped:
    """With the shape that the facts know, where none was given; checked against them."""
    feature = facts.feature(name, "features")
    wanted = {"number": {"number", "integer"}, "bytes": {"bytes"}, "image": {"image"}}[mapped.type]
    if feature.type not in wanted:
        refuse("features", f"{name} is {feature.type} in the file", mapped.type, f"Map it as {feature.type}")
    if mapped.type == "image":
        shape = mapped.shape or facts.shape
        if len(shape) != 3 or shape[2] not in (1, 3):
            refuse("features", f"{name} needs a shape [height, width, 1 or 3]", list(shape), "Such as [32, 32, 3]")
        return Mapped(type="image", shape=shape)
    if mapped.type == "bytes" and not mapped.shape:
        refuse("features", f"{name} is raw bytes and needs a shape", None, "Such as [28, 28, 1]")
    values = math.prod(feature.shape)
    if mapped.type == "number" and mapped.shape and math.prod(mapped.shape) != values:
        refuse("features", f"{name} has {values} values", list(mapped.shape), "Give a shape of as many")
    return Mapped(type=mapped.type, shape=mapped.shape or feature.shape or (1,))


class RecordSource:
    """Examples as they stand in the files, parsed once it is known whose they are (streaming.Source)."""

    def __init__(self, options: Options) -> None:
        """Raises DataError."""
        from workers.training.streams.streaming import Piece

        facts = facts_of(options)
        self._files = paths_of(options)
        self._mapped, self._target = _mapped(options), _target(options)
        self._info = describe(options)
        self._stored = {name: facts.feature(name, "features") for name in (*self._mapped, self._target.name)}
        self.scale = 1 / 255 if next(iter(self._mapped.values())).type != "number" else 1.0
        self.row_bytes = max(1, facts.bytes // facts.samples)
        self.pieces = [Piece(number, part.samples) for number, part in enumerate(facts.parts)]

    def read(self, piece: int) -> Iterator[Rows]:
        """Serialized examples, object [rows], twice: the targets are in them. Raises DataError."""
        import tensorflow as tf

        file = self._files[piece]
        try:
            with tf.device("/cpu:0"):
                batches = iter(tf.data.TFRecordDataset(str(file)).batch(BATCH).as_numpy_iterator())
            for batch in batches:
                yield batch, batch
        except tf.errors.OpError as error:
            said = error.message.splitlines()[0][:160]
            raise DataError(f"{file} cannot be read ({said}); write it again.") from error

    def decode(self, rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
        """Features and targets as in Arrays. Raises DataError."""
        import numpy as np

        found = self._parsed(rows[0])
        targets = found[self._target.name]
        features = [self._values(name, found[name]) for name in self._mapped]
        joined = features[0] if len(features) == 1 else np.concatenate([e.reshape(len(e), -1) for e in features], 1)
        if self._info.classes:
            return joined, targets.astype(np.int32)
        return joined, targets.reshape(len(targets), -1).astype(np.float32)

    def _parsed(self, examples: NDArray[Any]) -> dict[str, NDArray[Any]]:
        import tensorflow as tf

        kinds = {"number": tf.float32, "integer": tf.int64}
        wanted = {
            name: tf.io.FixedLenFeature(feature.shape, kinds.get(feature.type, tf.string))
            for name, feature in self._stored.items()
        }
        try:
            with tf.device("/cpu:0"):
                examples = tf.constant(examples, tf.string)
                return {name: each.numpy() for name, each in tf.io.parse_example(examples, wanted).items()}
        except tf.errors.InvalidArgumentError as error:
            said = error.message.splitlines()[0][:160]
            raise DataError(f"An example cannot be read ({said}); write the file again.") from error

    def _values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """[examples, *shape]."""
        import numpy as np

        mapped = self._mapped[name]
        if mapped.type == "image":
            return decoded(list(values), [name] * len(values), mapped.shape)
        if mapped.type == "number":
            return values.astype(np.float32).reshape(len(values), *mapped.shape)
        size = math.prod(mapped.shape)
        if any(len(value) != size for value in values):
            raise DataError(f"The feature {name} does not have {size} bytes everywhere; give the shape that it has.")
        return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), *mapped.shape)
