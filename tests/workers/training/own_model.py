"""A model as a team brings it along: one network within another, with plain batch normalization."""

import keras


def build_model(inputs, outputs, options):
    body = keras.Sequential(
        [
            keras.layers.Conv2D(4, 3, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.Activation("silu"),
            keras.layers.AveragePooling2D(2),
            keras.layers.Flatten(),
        ]
    )
    entry = keras.Input(inputs)
    hidden = keras.layers.BatchNormalization()(keras.layers.Dense(16)(body(entry)))
    return keras.Model(entry, keras.layers.Dense(outputs)(keras.layers.Activation("silu")(hidden)))
