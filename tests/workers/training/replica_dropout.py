"""`replica_dropout.py STRATEGY` prints as JSON what two replicas' dropout kept before and after `vary_dropout`."""

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

spec = parse(seed_with(strategy={"name": sys.argv[1], "options": {"device_type": "cpu"}}))
[process] = place_here(spec)
place = Place(spec=spec, process=process, processes=(process,), run="")
devices.configure(place)
distribution = connect(place)


def masks(*, varied):
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


print(json.dumps({"alike": masks(varied=False), "varied": masks(varied=True)}))
