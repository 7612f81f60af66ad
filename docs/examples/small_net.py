"""A model of one's own for Lockstep: a small dense network with a shortcut, for data of any shape."""

import keras


def build_model(inputs, outputs, options):
    """A keras.Model from [batch, *inputs] to [batch, outputs] logits; `options` are those of the job."""
    width = int(options.get("width", 32))
    entry = keras.Input(inputs)
    flat = keras.layers.Flatten()(entry)
    hidden = keras.layers.Dense(width, activation="relu")(flat)
    hidden = keras.layers.Concatenate()([hidden, flat])
    return keras.Model(entry, keras.layers.Dense(outputs)(hidden))
