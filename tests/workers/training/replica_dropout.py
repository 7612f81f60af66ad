"""`replica_dropout.py STRATEGY...` prints as JSON what two replicas' dropout kept, by strategy: before and after
`vary_dropout`.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

from tests.workers.training.conftest import seed_with
from workers.contract.assignment import Place
from workers.contract.spec import parse
from workers.training import devices
from workers.training.distribution import connect
from workers.training.here import place_here


def place_of(strategy):
    spec = parse(seed_with(strategy={"name": strategy, "options": {"device_type": "cpu"}}))
    [process] = place_here(spec)
    return Place(spec=spec, process=process, processes=(process,), run="")


def masks(distribution, *, varied):
    keras.utils.set_random_seed(1)
    with distribution.scope():
        entry = keras.Input((64,))
        model = keras.Model(entry, keras.layers.Dropout(0.5)(entry))
    if varied:
        distribution.vary_dropout(model)

    def step():
        return model(tf.ones((1, 64)), training=True)

    call = tf.function(lambda: distribution.run(step, ()), autograph=False)
    return [[np.asarray(values).ravel().tolist() for values in distribution.local_values(call())] for _ in range(2)]


places = {strategy: place_of(strategy) for strategy in sys.argv[1:]}
devices.configure(next(iter(places.values())))
spreads = {strategy: connect(place) for strategy, place in places.items()}
kept = {
    name: {"alike": masks(each, varied=False), "varied": masks(each, varied=True)} for name, each in spreads.items()
}
print(json.dumps(kept))
