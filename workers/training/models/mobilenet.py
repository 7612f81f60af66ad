"""MobileNetV2 of keras.applications, untrained."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.contract.problems import Problem
from workers.training.models import _backbones as backbones

title = "MobileNetV2"
summary = (
    "Sandler et al., 2018: 2.3 million weights, batch normalization over the global batch. Small pictures are enlarged "
    "to 32 pixels."
)

FEATURES = 1280
BACKBONE = 2_257_120
"""Weights of the network without those of the channels in the first convolution."""


off_mesh = ("train",)
"""DTensor of TensorFlow 2.21 has no layout for the gradient of its depthwise convolutions."""


class Options(_Options):
    """Nothing but the head's dropout."""

    dropout: float = Field(0.2, ge=0, lt=1, title="Dropout", description="Part that is dropped before the logits.")


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs pictures."""
    return backbones.fits(info, "mobilenet")


def synchronizes(options: Options) -> bool:
    """Its batch normalization takes its statistics over all replicas."""
    return True


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from [batch, height, width, channels] in 0..1 to float32 [batch, outputs] logits."""
    import keras

    entry = keras.Input(info.shape)
    # Keras' network wants -1 to 1.
    pictures = keras.layers.Rescaling(2.0, offset=-1.0)(backbones.enlarged(entry))
    body = keras.applications.MobileNetV2(include_top=False, weights=None, input_tensor=pictures, pooling="avg")
    return backbones.headed(entry, body.output, info, options.dropout, "mobilenet")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """All weights, also the moving statistics of batch normalization, which are not trained."""
    return BACKBONE + 9 * 32 * info.shape[2] + (FEATURES + 1) * info.outputs


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """The two of its network that divide worst: what divides these divides all others of it."""
    return {"expanded_conv_depthwise": (1, 32), "block_2_depthwise": (1, 144), "the logits": (info.outputs, FEATURES)}
