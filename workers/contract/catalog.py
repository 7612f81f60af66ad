"""The menu: every strategy, model and dataset is a module in a folder, and exists because its file exists.

A plugin module declares `title`, `summary` and `Options`, imports TensorFlow only inside its functions, and offers

    strategy  layout(options) -> Layout                     the processes and devices that it needs
              check(options) -> list[Problem]               optional: what it cannot honour
              check_training(options, training) -> list[Problem]   optional: nor of the training settings
              check_kernels(options, kernels) -> list[Problem]     optional: nor of the model's large weights
              check_obstacles(obstacles, training) -> list[Problem]   optional: nor of an uploaded model's layers
              create(options, place) -> tf.distribute.Strategy
    model     build_model(info, options) -> keras.Model     from [batch, *info.shape] to float32 [batch, info.outputs]
              count_parameters(info, options) -> int        exactly those of the built model, without building it
              check(options, info) -> list[Problem]         optional: whether it fits the data
              synchronizes(options) -> bool                 optional: whether its layers talk over the replicas
              kernels(info, options) -> dict[str, tuple[int, ...]]   optional: each large weight by a name for people,
                                                            and the sizes of which one must divide to split it
              task: Task                                    optional: what it trains instead of the dataset's task
              off_mesh: tuple[JobKind, ...]                 optional: what a strategy `on_mesh` cannot do
              player_of(path) -> int, rates(options)        optional: for several losses, which of them a weight lowers,
                                                            and each player's learning rate as a multiple of the job's
    dataset   describe(options) -> DatasetInfo              without loading anything
              load(options, home) -> Arrays                 NumPy, in memory
              probe(options, home) -> str | None            optional: why this host cannot load it, else None
              inspect(path, options) -> Facts               of files: what they hold, for `options.facts`
              stream(options) -> streaming.Source           of files: read while training, when DatasetInfo.files is set
              by_hand = True                                optional: needs a path on the host, so no form offers it
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from types import ModuleType
from typing import Any, Literal

from pydantic import ValidationError

from workers.contract.base import Options
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.validation import problems_of

Kind = Literal["strategy", "model", "dataset"]
FOLDERS: dict[Kind, str] = {"strategy": "strategies", "model": "models", "dataset": "datasets"}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One plugin of the menu."""

    kind: Kind
    name: str
    title: str
    summary: str
    options: type[Options]
    module: ModuleType

    def parse(self, given: dict[str, Any]) -> Options:
        """The options as the plugin's own type.

        Raises SpecInvalid, its paths relative to the options.
        """
        try:
            return self.options.model_validate(given)
        except ValidationError as error:
            raise SpecInvalid(problems_of(error, self.options)) from None


@functools.cache
def entries(kind: Kind) -> dict[str, Entry]:
    """All plugins of a kind by name. Imports their modules, which import no TensorFlow."""
    package = importlib.import_module(f"workers.training.{FOLDERS[kind]}")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    return {name: _entry(kind, name, importlib.import_module(f"{package.__name__}.{name}")) for name in names}


def find(kind: Kind, name: str) -> Entry:
    """The plugin of that name.

    Raises SpecInvalid naming the known ones.
    """
    known = entries(kind)
    if name not in known:
        problem = Problem(f"{kind}.name", f"there is no {kind} of this name", name, f"Known: {', '.join(known)}")
        raise SpecInvalid([problem])
    return known[name]


def _entry(kind: Kind, name: str, module: ModuleType) -> Entry:
    return Entry(kind, name, module.title, module.summary, module.Options, module)
