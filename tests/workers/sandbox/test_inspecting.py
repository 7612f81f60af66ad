"""Real models are built once in the throw-away process; what does harm there is told in words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers.contract.keras_files import dense, entry, layer, sequential, write
from tests.workers.sandbox import hostile
from workers.contract.library import Confinement, Inspection, Report, check_seconds
from workers.sandbox.confinement import Limits, works
from workers.sandbox.inspecting import inspect

pytestmark = pytest.mark.tensorflow
UPLOAD = "00000000-0000-0000-0000-000000000000"
SAVE = """
import keras, sys
entry = keras.Input((8, 8, 1))
hidden = keras.layers.Conv2D(4, 3, padding="same", dilation_rate=2, activation="relu")(entry)
hidden = keras.layers.BatchNormalization()(hidden + keras.ops.relu(hidden) * 2.0)
hidden = keras.layers.Dropout(0.1)(keras.layers.GlobalAveragePooling2D()(hidden))
model = keras.Model(entry, keras.layers.Dense(10, activation="softmax", kernel_regularizer="l2")(hidden))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.save(sys.argv[1])
"""
MODULE = """
import keras
class Doubled(keras.layers.Layer):
    def call(self, x):
        return x * 2.0
def build_model(inputs, outputs, options):
    print("asked for", inputs, outputs, options)
    entry = keras.Input(inputs)
    hidden = keras.layers.Dense(options["units"])(keras.layers.Flatten()(entry))
    return keras.Model(entry, keras.layers.Dense(outputs)(Doubled()(hidden)))
"""


def of_keras(path: Path) -> Report:
    return inspect(path, Inspection(upload=UPLOAD, format="keras_file", sha256="0" * 64))


def of_module(tmp_path: Path, text: str, kind: Confinement | None = None, **limits: int) -> Report:
    path = tmp_path / "model.py"
    path.write_text(text)
    order = Inspection(
        upload=UPLOAD, format="python_module", sha256="0" * 64, inputs=(8, 8, 1), outputs=10, options={"units": 5}
    )
    return inspect(path, order, limits=Limits(**limits), kind=kind)


def test_it_builds_what_keras_saved(tmp_path: Path) -> None:
    path = tmp_path / "real.keras"
    subprocess.run([sys.executable, "-c", SAVE, path], check=True, capture_output=True)
    report = of_keras(path)
    assert report.refused == ""
    assert report.model is not None
    assert (report.model.inputs, report.model.outputs, report.model.ending) == ((8, 8, 1), 10, "softmax")
    assert report.model.parameters == 40 + 16 + 50
    assert report.model.bytes == 4 * report.model.parameters
    assert report.model.kernels == {"conv2d": (4, 1), "dense": (10, 4)}
    [obstacle] = report.model.obstacles
    assert (obstacle.trait, obstacle.layer, obstacle.kind) == ("dilated", "conv2d", "Conv2D")
    assert report.output == ""


def test_it_says_why_a_model_cannot_be_built(tmp_path: Path) -> None:
    # The weights are of another shape than the configuration says.
    report = of_keras(write(tmp_path / "a.keras", sequential(entry(5), dense(3, 5))))
    assert report.refused.startswith("It cannot be opened: ValueError")
    assert report.model is None


def test_it_refuses_code_before_keras_sees_it(tmp_path: Path) -> None:
    assert "Lambda layer, which is code" in of_keras(write(tmp_path / "a.keras", sequential(layer("Lambda")))).refused


def test_it_says_what_is_wrong_with_a_module(tmp_path: Path) -> None:
    assert "SyntaxError" in of_module(tmp_path, "def build_model(:").refused
    assert "defines no build_model" in of_module(tmp_path, "x = 1").refused


def test_it_builds_what_a_module_makes_under_landlock(tmp_path: Path) -> None:
    if not works("landlock"):
        pytest.skip("this kernel knows no Landlock")
    report = of_module(tmp_path, MODULE, kind="landlock")
    assert (report.refused, report.confinement) == ("", "landlock")
    assert report.model is not None
    assert report.model.parameters == 65 * 5 + 6 * 10
    assert report.output == "asked for (8, 8, 1) 10 {'units': 5}\n"


def test_it_tries_no_module_that_nothing_would_hold(tmp_path: Path) -> None:
    report = of_module(tmp_path, "print('run')", kind="limits")
    assert "neither bubblewrap nor namespaces nor Landlock" in report.refused
    assert report.output == ""


def test_a_large_file_gets_more_time() -> None:
    assert check_seconds(2**20) == 180
    assert check_seconds(2 * 2**30) > 1_000


def test_it_ends_an_endless_module_and_tells_none_of_our_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "do-not-tell")
    # It has used as much as it may: what is spent before it runs differs from machine to machine.
    spent = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))"
    report = of_module(tmp_path, f"{hostile.ENVIRONMENT}\n{spent}\n{hostile.ENDLESS}", cpu_seconds=60)
    assert "more than 60 s of processor time" in report.refused
    assert "LOCKSTEP_ANSWER_FD" in report.output
    if report.confinement != "limits":
        assert "do-not-tell" not in report.output
