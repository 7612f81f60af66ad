"""The artifact store as the web half opens it."""

from __future__ import annotations

import functools

from django.conf import settings

from workers.contract.store import Store


def store() -> Store:
    """The store that LOCKSTEP_STORE names. Raises ValueError for an address that nothing here can open."""
    return _open(settings.LOCKSTEP_STORE)


@functools.cache
def _open(url: str) -> Store:
    return Store(url)
