"""The optimizers that a spec may name, each with its own settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from workers.contract.base import Strict


class _Optimizer(Strict):
    name: str
    learning_rate: float = Field(
        0.001, gt=0, le=100, allow_inf_nan=False, title="Learning rate", description="Before scaling and warm-up."
    )


class Sgd(_Optimizer):
    """Plain stochastic gradient descent."""

    name: Literal["sgd"] = "sgd"
    learning_rate: float = Field(0.01, gt=0, le=100, allow_inf_nan=False, title="Learning rate")


class Momentum(_Optimizer):
    """SGD with momentum."""

    name: Literal["momentum"] = "momentum"
    learning_rate: float = Field(0.01, gt=0, le=100, allow_inf_nan=False, title="Learning rate")
    momentum: float = Field(0.9, ge=0, lt=1, title="Momentum")
    nesterov: bool = Field(False, title="Nesterov", description="Look ahead before the gradient is taken.")


class RMSprop(_Optimizer):
    """Divides by a moving root mean square of the gradients."""

    name: Literal["rmsprop"] = "rmsprop"
    rho: float = Field(0.9, ge=0, lt=1, title="Rho", description="Decay of the moving mean.")
    momentum: float = Field(0.0, ge=0, lt=1, title="Momentum")


class Adam(_Optimizer):
    """Adaptive moments (Kingma and Ba, 2015)."""

    name: Literal["adam"] = "adam"
    beta_1: float = Field(0.9, ge=0, lt=1, title="Beta 1")
    beta_2: float = Field(0.999, ge=0, lt=1, title="Beta 2")


class AdamW(_Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    name: Literal["adamw"] = "adamw"
    beta_1: float = Field(0.9, ge=0, lt=1, title="Beta 1")
    beta_2: float = Field(0.999, ge=0, lt=1, title="Beta 2")
    weight_decay: float = Field(0.004, ge=0, title="Weight decay")


Optimizer = Annotated[Sgd | Momentum | RMSprop | Adam | AdamW, Field(discriminator="name")]
OPTIMIZERS: dict[str, type[_Optimizer]] = {
    "sgd": Sgd,
    "momentum": Momentum,
    "rmsprop": RMSprop,
    "adam": Adam,
    "adamw": AdamW,
}
