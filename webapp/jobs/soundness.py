"""Whether the artifact store still holds a checkpoint as it was written: disks lose bytes, and people edit files."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from webapp.jobs.models import Checkpoint
from webapp.jobs.store import store
from workers.contract.document import VERSION
from workers.contract.store import Store

MANIFEST = "manifest.json"
DIGEST_BYTES = 64 * 2**20
"""Files up to this size are read whole when that is asked for; of larger ones the length has to do here, and the host
that fetches them reads every byte."""


def fault(checkpoint: Checkpoint, *, every_byte: bool = False) -> str:
    """What is wrong with a stored checkpoint, as the end of a sentence about it; empty when nothing is known to be.

    A store that cannot be reached is no fault of the checkpoint.
    """
    if not checkpoint.sha256:
        return ""
    try:
        return _fault(store(), checkpoint, every_byte)
    except FileNotFoundError:
        # A folder that is not mounted is empty: that tells nothing of what is in the store.
        return f"is torn: the artifact store has lost its {MANIFEST}" if store().has("jobs") else ""
    except OSError:
        return ""


def _fault(files: Store, checkpoint: Checkpoint, every_byte: bool) -> str:
    with files.open(f"{checkpoint.key}/{MANIFEST}") as file:
        written = file.read()
    manifest = _read(written)
    if isinstance(manifest.get("version"), str) and manifest["version"] != VERSION:
        return f"is of version {manifest['version']}, and this Lockstep reads {VERSION}"
    if hashlib.sha256(written).hexdigest() != checkpoint.sha256:
        return f"is torn: its {MANIFEST} is not the one that was written"
    for name, told in manifest.get("files", {}).items():
        problem = _fault_of(files, f"{checkpoint.key}/{name}", told, every_byte)
        if problem:
            return f"is torn: {name} {problem}"
    return ""


def _read(written: bytes) -> dict[str, Any]:
    try:
        read = json.loads(written)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _fault_of(files: Store, key: str, told: dict[str, Any], every_byte: bool) -> str:
    try:
        size = files.size(key)
    except FileNotFoundError:
        return "is missing"
    if size != told["bytes"]:
        return f"has {size:,} bytes instead of {told['bytes']:,}"
    if not every_byte or size > DIGEST_BYTES:
        return ""
    with files.open(key) as file:
        same = hashlib.sha256(file.read()).hexdigest() == told["sha256"]
    return "" if same else "is not what was written: its sha256 differs"
