"""What there is to keep of a training state: every variable, by a name that no strategy changes.

`model/<path>` are the model's weights, `random/<n>` the states of its layers' random numbers as replica 0 has them,
`optimizer/iteration` the steps that the optimizer counts (`/1` and so on: those of a model's further players),
`optimizer/<slot>/<path>` what it keeps of each weight, and `optimizer/loss_scale/<name>` the scale of float16. The
learning rate is not among them: the spec says what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SEED = "seed_generator_state"
ITERATION = "optimizer/iteration"
MODEL = "model/"


def is_seed(variable: Any) -> bool:
    """Whether this is the state of a layer's random numbers."""
    return bool(variable.name == SEED)


def variables(model: Any, optimizer: Any, stand_ins: Mapping[int, list[Any]]) -> dict[str, list[Any]]:
    """All variables to keep by name, each as its parts along the first axis in their order: mostly one.

    `stand_ins` are by the id of a variable of the model what is trained in its place, where that is not itself.
    """

    def of(variable: Any) -> list[Any]:
        return stand_ins.get(id(variable), [variable])

    seeds = [variable for variable in model.non_trainable_variables if is_seed(variable)]
    found = {f"{MODEL}{weight.path}": of(weight) for weight in model.weights}
    found |= {f"random/{number}": of(seed) for number, seed in enumerate(seeds)}
    return found | _optimizer_state(optimizer, {weight.path: of(weight) for weight in model.trainable_variables})


def _optimizer_state(optimizer: Any, weights: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """`weights` are those that it was built for, by the path of the model's weight."""
    owners = {part.path.replace("/", "_") + "_": path for path, parts in weights.items() for part in parts}
    found: dict[str, list[Any]] = {}
    for number, one in enumerate(getattr(optimizer, "each", [optimizer])):
        inner = getattr(one, "inner_optimizer", one)
        found[f"{ITERATION}/{number}" if number else ITERATION] = [inner._iterations]
        if inner is not one:
            scale = {name: [getattr(one, name)] for name in ("step_counter", "dynamic_scale")}
            found |= {f"optimizer/loss_scale/{name}": variable for name, variable in scale.items()}
        for slot in inner.variables:
            if slot is inner._iterations or slot.name == "learning_rate":
                continue
            # Keras names a slot after its weight; of two that fit, the longer is the weight's whole name.
            owner = max((prefix for prefix in owners if slot.name.startswith(prefix)), key=len, default="")
            name = f"{slot.name.removeprefix(owner)}/{owners[owner]}" if owner else slot.name
            found.setdefault(f"optimizer/{name}", []).append(slot)
    return found
