"""Models that DTensor has to guess most about, trained with each optimizer on a mesh and on one device.

Prints JSON: for each the greatest distance between the weights after some steps.
"""

import json

import keras
import numpy as np

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.contract.spec import parse
from workers.training import data, devices
from workers.training.distribution import connect
from workers.training.here import place_here
from workers.training.objective import objective_of
from workers.training.optimizers import build_optimizer
from workers.training.steps import Hints

STEPS = 5
MODELS = {
    "transformer_lm": (
        {"layers": 1, "width": 8, "heads": 2, "dropout": 0},
        {"name": "synthetic_tokens", "options": {"vocabulary": 8, "length": 6, "samples": 200}},
    ),
    # Split on its inputs, which a Flatten makes: 7 is odd.
    "mlp": ({"units": [7], "dropout": [0], "activation": "silu"}, {"name": "digits"}),
    "wide_and_deep": ({"units": [8]}, {"name": "synthetic_clicks", "options": {"samples": 200}}),
    # Each of these has a layer split on its inputs behind what DTensor cannot compute on parts: tensors put together,
    # the average of windows.
    "joined": ({"units": [9, 6], "width": 6}, {"name": "synthetic_clicks", "options": {"samples": 200}}),
    "averaged": ({"filters": [4, 9], "units": 7, "pooling": "average", "dropout": 0}, {"name": "digits"}),
}
NAMED = {"joined": "wide_and_deep", "averaged": "cnn"}
CASES = [
    ("transformer_lm", "rmsprop", (2, 2)),
    ("transformer_lm", "adamw", (1, 2)),
    ("mlp", "rmsprop", (1, 2)),
    ("mlp", "rmsprop", (2, 2)),
    ("wide_and_deep", "adam", (2, 2)),
    ("joined", "rmsprop", (1, 2)),
    ("averaged", "rmsprop", (2, 2)),
]


def job(model, optimizer, strategy):
    options, dataset = MODELS[model]
    return parse(
        {
            "version": "lockstep/v1",
            "name": "optimizers",
            "dataset": dataset,
            "model": {"name": NAMED.get(model, model), "options": options},
            "strategy": strategy,
            "training": {"steps": STEPS, "global_batch": 24, "seed": 5, "optimizer": {"name": optimizer}},
        }
    )


def on_mesh(model, optimizer, mesh):
    shape = dict(zip(("batch", "model"), mesh, strict=True))
    return job(model, optimizer, {"name": "model_parallel", "options": {"mesh": shape, "device_type": "cpu"}})


def place_of(spec):
    [process] = place_here(spec)
    return Place(spec=spec, process=process, processes=(process,), run="")


def trained(spec):
    distribution = connect(place_of(spec))
    keras.utils.set_random_seed(5)
    with distribution.scope():
        model = catalog.find("model", spec.model.name).module.build_model(spec.dataset_info, spec.options_of("model"))
        optimizer = distribution.optimizer(model, lambda: build_optimizer(spec))
    loaded = data.load(spec)
    steps = distribution.steps(model, optimizer, objective_of(spec), spec)
    steps.place(loaded.training, loaded.scale)
    steps.begin_epoch(0)
    steps.run(0, STEPS, Hints(), STEPS)
    distribution.settle(model)
    return model.get_weights()


def distance(one, other):
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


if __name__ == "__main__":
    devices.configure(place_of(on_mesh("transformer_lm", "adam", (2, 2))))
    alone, answer = {}, {}
    for model, optimizer, mesh in CASES:
        if (model, optimizer) not in alone:
            alone[model, optimizer] = trained(job(model, optimizer, {"name": "one_device"}))
        found = trained(on_mesh(model, optimizer, mesh))
        answer[f"{model} {optimizer} {mesh[0]}x{mesh[1]}"] = distance(found, alone[model, optimizer])
    print(json.dumps(answer), flush=True)
