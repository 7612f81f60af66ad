"""`same_weights.py FILE FILE` prints as JSON whether two saved models hold the same weights."""

import json
import sys

import keras
import numpy as np

one, two = (keras.models.load_model(path, compile=False).get_weights() for path in sys.argv[1:])
print(json.dumps({"same": all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))}))
