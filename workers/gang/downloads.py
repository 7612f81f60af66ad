"""Whether a job's dataset still has to come over the network, which a private network does not reach."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from workers.contract import catalog
from workers.contract.spec import JobSpec

OFFLINE = "LOCKSTEP_OFFLINE"


def data_home(env: Mapping[str, str]) -> Path:
    """Where datasets keep their files on this host: KERAS_HOME, else ~/.keras, as Keras has it."""
    return Path(env.get("KERAS_HOME") or Path.home() / ".keras")


def is_offline(env: Mapping[str, str]) -> bool:
    """Whether this host was told never to download."""
    return env.get(OFFLINE, "").lower() in {"1", "true", "yes"}


def may_download(spec: JobSpec, env: Mapping[str, str]) -> bool:
    """True when the host may download and the dataset is not here yet; then the job keeps the host's network."""
    if is_offline(env):
        return False
    entry = catalog.find("dataset", spec.dataset.name)
    probe = getattr(entry.module, "probe", None)
    if probe is None:
        return False
    with _as_if_offline():
        return probe(entry.parse(spec.dataset.options), data_home(env)) is not None


@contextmanager
def _as_if_offline() -> Iterator[None]:
    """A probe answers for a host that may download; only offline does it say what is here already."""
    before = os.environ.get(OFFLINE)
    os.environ[OFFLINE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[OFFLINE]
        else:
            os.environ[OFFLINE] = before
