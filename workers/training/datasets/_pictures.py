"""Decodes pictures with TensorFlow, on the processor, to one size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workers.training.arrays import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def decoded(contents: Sequence[bytes], names: Sequence[str], shape: tuple[int, ...]) -> NDArray[Any]:
    """Uint8 [pictures, *shape]. Raises DataError naming the picture that cannot be read."""
    import numpy as np
    import tensorflow as tf

    height, width, channels = shape
    pictures = np.empty((len(contents), *shape), np.uint8)
    with tf.device("/cpu:0"):
        for place, (content, name) in enumerate(zip(contents, names, strict=True)):
            try:
                picture = tf.io.decode_image(content, channels=channels, expand_animations=False)
            except tf.errors.InvalidArgumentError as error:
                said = error.message.splitlines()[0][:120]
                raise DataError(f"The picture {name} cannot be read ({said}); remove it or save it anew.") from error
            if picture.shape[:2] != (height, width):
                resized = tf.image.resize(picture, (height, width), antialias=True)
                picture = tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)
            pictures[place] = picture.numpy()
    return pictures
