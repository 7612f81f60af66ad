"""The TPU cores that this host may give to jobs, as the system shows them. Imports no TensorFlow."""

from __future__ import annotations

import importlib.util
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from workers.contract.inventory import DeviceInfo

DEV = Path("/dev")
CHIP = re.compile(r"accel\d+")
VFIO_GROUP = re.compile(r"\d+")
CORES_OF_CHIP = {"v2": 2, "v3": 2}
"""Chips whose cores TensorFlow sees one by one; later ones are one device each (https://cloud.google.com/tpu/docs)."""


def tpus(dev: Path = DEV, env: Mapping[str, str] = os.environ, *, cores: int | None = None) -> tuple[DeviceInfo, ...]:
    """One for each core. Chips up to v4 are `/dev/accel*`, later ones VFIO groups, which other devices may be as well:
    those count only where TPU_* variables or the libtpu package say what they are. `cores` are those of a pod slice.
    """
    kind = env.get("TPU_ACCELERATOR_TYPE") or env.get("ACCELERATOR_TYPE") or ""
    generation = kind.partition("-")[0]
    name = f"TPU {kind}" if kind else "TPU"
    count = _chips(dev, env) * CORES_OF_CHIP.get(generation, 1) if cores is None else cores
    return tuple(DeviceInfo(kind="tpu", index=index, name=name) for index in range(count))


def _chips(dev: Path, env: Mapping[str, str]) -> int:
    found = _count(dev, CHIP)
    if found == 0 and _made_for_tpus(env):
        found = _count(dev / "vfio", VFIO_GROUP)
    limit = _visible(env)
    return found if limit is None else min(found, limit)


def _count(folder: Path, name: re.Pattern[str]) -> int:
    try:
        return sum(name.fullmatch(entry.name) is not None for entry in folder.iterdir())
    except OSError:
        return 0


def _visible(env: Mapping[str, str]) -> int | None:
    """How many chips the host daemon's environment leaves: TPU_VISIBLE_CHIPS lists them, the bounds multiply up."""
    listed = env.get("TPU_VISIBLE_CHIPS") or env.get("TPU_VISIBLE_DEVICES")
    if listed:
        return len([part for part in listed.split(",") if part.strip()])
    bounds = env.get("TPU_CHIPS_PER_HOST_BOUNDS", "").split(",")
    return math.prod(map(int, bounds)) if all(part.strip().isdigit() for part in bounds) else None


def _made_for_tpus(env: Mapping[str, str]) -> bool:
    told = any(name.startswith("TPU_") and value for name, value in env.items())
    return told or importlib.util.find_spec("libtpu") is not None
