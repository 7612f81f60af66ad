"""What is of the wrong kind is refused in words that say how it is written, not in pydantic's."""

from __future__ import annotations

from typing import Any

import pytest

from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import parse

SPEC = """
version: lockstep/v1
name: x
dataset: {name: digits}
model: {name: mlp}
strategy: {name: mirrored}
training: {epochs: 1}
"""


def refused(document: str | dict[str, Any]) -> Problem:
    with pytest.raises(SpecInvalid) as caught:
        parse(document)
    [problem] = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("training: {epochs: ten}", "training.epochs: must be a whole number (got ten)"),
        ("training: {epochs: ''}", 'training.epochs: must be a whole number (got "")'),
        ("training: {epochs: 1e3}", "training.epochs: must be a whole number (got 1e3). Write 1000"),
        ("training: {epochs: yes}", "training.epochs: must be a number, not true or false (got True)"),
        ("training: {epochs: 1000000000}", "training.epochs: must be at most 100,000 (got 1000000000)"),
        ("training: {epochs: 1, seed: -1}", "training.seed: must be at least 0 (got -1)"),
        ("training: {epochs: 1, seed: }", "training.seed: has no value. Give it one"),
        ("training: {epochs: 1, jit: ten}", "training.jit: must be true or false (got ten)"),
        (
            "training: {epochs: 1, clip: 5}",
            "training.clip: takes fields of its own (got 5). Known: value, norm, global",
        ),
        ("training: {epochs: 1, optimizer: adam}", "training.optimizer: takes fields of its own (got adam). Write {n"),
        (
            "training: {epochs: 1, optimizer: {name: adm}}",
            "training.optimizer.name: must be one of sgd, momentum, rmsprop, adam, adamw (got adm)",
        ),
        ("training: {epochs: 1, optimizer: {}}", "training.optimizer.name: must be one of sgd, momentum"),
        (
            "training: {epochs: 1, steps_per_call: few}",
            "training.steps_per_call: must be auto or between 1 and 10,000 (got few)",
        ),
        ("training: {epochs: 1, warmup_steps: 12}", "training.warmup_steps: lasts longer than the job, which takes 11"),
        ("strategy: mirrored", "strategy: takes fields of its own (got mirrored). Write {name: mirrored}"),
        ("model: {name: mlp, options: {units: 64}}", "model.options.units: must be a list (got 64). Write it in br"),
        ("name: 2020-01-01", 'name: must be text (got 2020-01-01). Write it in quotes: "2020-01-01"'),
        (f"name: {'x' * 121}", "name: must have at most 120 characters"),
        ("tags: [a b]", "tags.0: is not written as it has to be (got a b). Up to 40 letters, digits and . _ : - each"),
        ("export: [onnx]", "export.0: must be 'keras' or 'saved_model' (got onnx)"),
        ("checkpoint: {every: 5}", "checkpoint.every: is not a known field (got 5). Did you mean every_steps?"),
        (
            "dataset: {name: tfrecord, options: {features: {x: {}}}}",
            "dataset.options.features.x.type: is required. Add it: number or bytes or image",
        ),
        ("epochs: 5", "epochs: is not a known field (got 5). Did you mean training.epochs?"),
        ("3: 3", "3: is not a known field (got 3). Known: version, name"),
    ],
)
def test_it_says_what_is_taken_and_how_it_is_written(wrong: str, said: str) -> None:
    key = wrong.partition(":")[0]
    kept = [line for line in SPEC.splitlines() if not line.startswith(f"{key}:")]
    assert str(refused("\n".join([*kept, wrong]))).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SPEC + "\ttags: [a]", "at line 8, column 1: it is indented by a tab. Indent by spaces"),
        ("? [1, 2]\n: 3", "at line 1, column 3: a key is no single word"),
        ("{a: 1}: 2", "at line 1, column 1: a key is no single word"),
    ],
)
def test_it_says_where_a_text_is_no_yaml(text: str, said: str) -> None:
    assert said in str(refused(text))
