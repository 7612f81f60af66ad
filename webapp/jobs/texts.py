"""Text that hosts tell, made fit for a column."""

from __future__ import annotations


def fit(text: str, length: int | None = None) -> str:
    """`text` cut to `length` characters, without NUL, which PostgreSQL cannot store and logs of crashes may hold."""
    clean = text.replace("\x00", "\ufffd")
    return clean if length is None or len(clean) <= length else clean[: length - 1] + "…"
