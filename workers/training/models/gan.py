"""A generative adversarial network (Goodfellow et al., 2014): one network draws examples, the other tells them apart.

Both take their step at once, each by an optimizer of its own, on the same examples.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo, Task, ids_refused
from workers.contract.problems import Problem

title = "Adversarial network"
summary = (
    "A generator that draws examples out of noise against a discriminator: two losses, two optimizers, one step. "
    "Synchronous strategies only; classes are not used."
)
task: Task = "adversarial"

DISCRIMINATOR, GENERATOR = 0, 1
"""The players, in the order of their losses (workers/training/objective.py)."""


class Options(_Options):
    """Dense networks for any numbers; the discriminator's layers are the generator's in turn."""

    noise: int = Field(32, ge=1, le=65_536, title="Noise", description="Random values that an example is drawn from.")
    units: tuple[Annotated[int, Field(ge=1, le=65_536)], ...] = Field(
        (128, 256),
        title="Units",
        description="Width of each of the generator's hidden layers, first to last.",
        min_length=1,
        max_length=50,
    )
    output: Literal["sigmoid", "linear"] = Field(
        "sigmoid", title="Output", description="Sigmoid draws values of 0 to 1, as pictures have; linear any."
    )
    generator_rate: float = Field(
        1.0,
        gt=0,
        le=1000,
        title="Generator's rate",
        description="The generator's learning rate as a multiple of the discriminator's, which is the job's.",
    )


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs plain numbers."""
    return ids_refused(info, "gan")


def player_of(path: str) -> int:
    """Which of the losses a weight of this path lowers."""
    return GENERATOR if path.startswith("generator") else DISCRIMINATOR


def rates(options: Options) -> tuple[float, float]:
    """Each player's learning rate as a multiple of the job's."""
    return 1.0, options.generator_rate


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from [batch, *shape] to float32 [batch, 2]: logits that the example, and that a drawn one is real.

    Its layer `generator` draws out of [batch, noise]. The noise is there in training only; evaluated is what is drawn
    out of zeros.
    """
    import keras

    entry = keras.Input(info.shape)
    generator, discriminator = _generator(info, options), _discriminator(info, options)
    nothing = keras.ops.zeros_like(keras.layers.Flatten()(entry)[:, :1])
    noise = keras.layers.GaussianNoise(1.0)(keras.layers.RepeatVector(options.noise)(nothing))
    drawn = generator(keras.layers.Flatten()(noise))
    logits = keras.layers.Concatenate(dtype="float32")([discriminator(entry), discriminator(drawn)])
    return keras.Model(entry, logits, name="gan")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """Trainable weights of both."""
    up, down = (options.noise, *options.units, info.features), (info.features, *reversed(options.units), 1)
    return sum((width + 1) * after for row in (up, down) for width, after in itertools.pairwise(row))


def _generator(info: DatasetInfo, options: Options) -> Any:
    import keras

    entry = hidden = keras.Input((options.noise,))
    for number, units in enumerate(options.units):
        hidden = keras.layers.Dense(units, activation="leaky_relu", name=f"generator_{number}")(hidden)
    hidden = keras.layers.Dense(info.features, activation=options.output, name="generator_drawn")(hidden)
    return keras.Model(entry, keras.layers.Reshape(info.shape)(hidden), name="generator")


def _discriminator(info: DatasetInfo, options: Options) -> Any:
    import keras

    entry = keras.Input(info.shape)
    hidden = keras.layers.Flatten()(entry)
    for number, units in enumerate(reversed(options.units)):
        hidden = keras.layers.Dense(units, activation="leaky_relu", name=f"discriminator_{number}")(hidden)
    logit = keras.layers.Dense(1, dtype="float32", name="discriminator_logit")(hidden)
    return keras.Model(entry, logit, name="discriminator")
