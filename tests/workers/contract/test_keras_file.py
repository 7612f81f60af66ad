"""A `.keras` file is taken or refused by what it names, before anything loads it."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.workers.contract.keras_files import dense, entry, layer, sequential, weights, write
from workers.contract import keras_file
from workers.contract.problems import SpecInvalid


def refusal(path: Path) -> str:
    with pytest.raises(SpecInvalid) as refused:
        keras_file.check(path)
    return str(refused.value)


def test_it_tells_what_a_plain_model_is(tmp_path: Path) -> None:
    found = keras_file.check(write(tmp_path / "a.keras"))
    assert (found.inputs, found.parameters, found.layers, found.keras_version) == ((4,), 12, 2, "3.15.1")


def test_it_takes_what_keras_writes_for_arithmetic_and_for_compiled_models(tmp_path: Path) -> None:
    config = sequential(
        entry(4),
        layer("Add", {"name": "add"}, module="keras.src.ops.numpy", registered_name="Add"),
        dense(3, 4, kernel_regularizer=layer("L2", {"l2": 0.01}, module="keras.regularizers")),
    )
    config["compile_config"] = {"optimizer": layer("Adam", {"name": "adam"}, module="keras.optimizers")}
    assert keras_file.check(write(tmp_path / "a.keras", config)).inputs == (4,)


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "lambda": (layer("Lambda", {"function": {"class_name": "__lambda__"}}), "Lambda layer, which is code"),
    "lambda value": (dense(3, 4, activation={"class_name": "__lambda__", "config": {"code": "4w=="}}), "which is code"),
    "saved model": (layer("TFSMLayer", {"filepath": "/tmp/x"}), "loads a program from a path"),
    "vocabulary path": (layer("StringLookup", {"vocabulary": "/etc/passwd"}), "read files by its vocabulary"),
    "whole numbers": (layer("IntegerLookup", {"vocabulary": "http://h/x"}), "read files by its vocabulary"),
    "text": (layer("TextVectorization", {"vocabulary": "/etc/passwd"}), "read files by its vocabulary"),
    "torch": (layer("TorchModuleWrapper", {"module": "x"}), "unpickles code"),
    "custom": (layer("Mine", module="mine", registered_name="My>Mine"), "My>Mine"),
    "registered as another": (layer("Dense", registered_name="Evil>Dense"), "Evil>Dense"),
    "module path": (layer("function", "system", module="os"), "function of its own"),  # type: ignore[arg-type]
    "module path of a class": (layer("Popen", module="subprocess"), "subprocess.Popen"),
    "utilities of keras": (layer("get_file", module="keras.utils"), "keras.utils.get_file"),
    "inside of keras": (layer("Lambda2", module="keras.src.layers.core.lambda_layer"), "not one of the listed"),
    "class that is no text": (layer(["Dense"]), "not one of the listed"),  # type: ignore[arg-type]
    "initializer": (dense(3, 4, kernel_initializer=layer("Evil", module="builtins")), "builtins.Evil"),
    "wrapped": (layer("TimeDistributed", {"layer": layer("Lambda")}), "Lambda layer"),
    "shape bomb": (dense(2**40, 4), "4,398,046,511,104 weights"),
    "embedding bomb": (layer("Embedding", {"input_dim": 10**9, "output_dim": 10**6}), "weights, and the file holds"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_refuses_by_name(tmp_path: Path, name: str) -> None:
    bad, words = HOSTILE[name]
    said = refusal(write(tmp_path / "a.keras", sequential(entry(4), bad)))
    assert words in said
    assert "config.json.config.layers.1" in said or "config.json: asks for" in said


def test_it_refuses_code_in_what_the_model_was_compiled_with(tmp_path: Path) -> None:
    config = sequential(entry(4), dense(3, 4)) | {"compile_config": {"loss": layer("function", module="builtins")}}
    assert "compile_config.loss" in refusal(write(tmp_path / "a.keras", config))


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/cron.d/x", "a/../../b", "..\\b"])
def test_it_refuses_names_that_leave_the_folder(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a.keras")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, "x")
    assert "would leave its folder" in refusal(path)


def test_it_refuses_a_link(tmp_path: Path) -> None:
    path = write(tmp_path / "a.keras")
    link = zipfile.ZipInfo("assets")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    assert "holds a link" in refusal(path)


def test_it_refuses_assets(tmp_path: Path) -> None:
    path = write(tmp_path / "a.keras")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("assets/vocabulary.txt", "x")
    assert "no model of built-in layers needs" in refusal(path)


def test_it_refuses_a_bomb(tmp_path: Path) -> None:
    assert "100 times its size" in refusal(write(tmp_path / "a.keras", b" " * 4_000_000 + b"{}"))
    huge = write(tmp_path / "b.keras", b" " * 9_000_000 + b"{}")
    assert "unpacks to more than 8,192 KiB" in refusal(huge)


def test_it_refuses_two_configurations(tmp_path: Path) -> None:
    path = write(tmp_path / "a.keras")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("config.json", "{}")
    assert "more than one config.json" in refusal(path)


def test_it_refuses_what_is_no_model(tmp_path: Path) -> None:
    other = tmp_path / "a.keras"
    other.write_bytes(b"PK\x03\x04 and nothing more")
    assert "torn or not a .keras file" in refusal(other)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("metadata.json", "{}")
    assert "holds no config.json" in refusal(other)
    assert "not readable JSON" in refusal(write(other, b"{" * 100))
    assert "not readable JSON" in refusal(write(other, b"[" * 50_000))
    assert "not a mapping" in refusal(write(other, b"[]"))
    assert "not an HDF5 file" in refusal(write(other, h5=b"import os"))


def test_it_refuses_deep_nesting(tmp_path: Path) -> None:
    assert "nested more than" in refusal(write(tmp_path / "a.keras", b'{"a":' * 200 + b"1" + b"}" * 200))


def test_it_refuses_a_torn_file(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.keras", h5=weights(64, 64))
    content = bytearray(whole.read_bytes())
    start = content.index(b"model.weights.h5") + 60
    content[start : start + 20] = b"x" * 20
    whole.write_bytes(content)
    with pytest.raises(SpecInvalid, match=r"torn|HDF5"):
        keras_file.check(whole)
