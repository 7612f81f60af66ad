"""Reads the query of a data address; what cannot be read gets an answer that names the field and what would work."""

from __future__ import annotations

from django.http import QueryDict

BIGGEST = 2**63 - 1


class BadQuery(ValueError):
    """`field` of the query holds what it may not."""

    def __init__(self, field: str, value: str, remedy: str) -> None:
        self.field = field
        super().__init__(f"{field}: {value[:80]!r} is not valid. {remedy}")


def whole(query: QueryDict, field: str, *, least: int = -BIGGEST, most: int = BIGGEST) -> int | None:
    """An integer, None when it is absent or empty. Raises BadQuery."""
    text = query.get(field, "")
    if text == "":
        return None
    try:
        number = int(text) if len(text) < 25 else None
    except ValueError:
        number = None
    if number is None or not least <= number <= most:
        raise BadQuery(field, text, f"Give an integer from {least} to {most}.")
    return number


def one_of(query: QueryDict, field: str, known: tuple[str, ...]) -> str:
    """One of the known words, or "" when it is absent. Raises BadQuery."""
    text = query.get(field, "")
    if text and text not in known:
        raise BadQuery(field, text, f"Known: {', '.join(known)}.")
    return text


def text(query: QueryDict, field: str, *, longest: int = 200) -> str:
    """Plain text, "" when it is absent. Raises BadQuery."""
    value = query.get(field, "")
    if len(value) > longest or "\x00" in value:
        raise BadQuery(field, value, f"Give at most {longest} characters, none of them NUL.")
    return value


def names(query: QueryDict, field: str, *, most: int = 500) -> list[str] | None:
    """Names separated by commas, None when it is absent or empty. Raises BadQuery."""
    value = text(query, field, longest=50_000)
    parts = [part for part in value.split(",") if part]
    if len(parts) > most:
        raise BadQuery(field, value, f"Give at most {most} names.")
    return parts or None


def indexes(query: QueryDict, field: str) -> dict[tuple[str, int | None], int] | None:
    """`loss:120,utilization.0:88` as {("loss", None): 120, ("utilization", 0): 88}. Raises BadQuery."""
    parts = names(query, field, most=5_000)
    if parts is None:
        return None
    found: dict[tuple[str, int | None], int] = {}
    for part in parts:
        key, _, index = part.rpartition(":")
        name, dot, replica = key.rpartition(".")
        if not (key and index.isascii() and index.isdigit() and len(index) < 19):
            raise BadQuery(field, part, "Give name:index or name.replica:index, separated by commas.")
        if dot and replica.isascii() and replica.isdigit() and len(replica) < 10:
            found[name, int(replica)] = int(index)
        else:
            found[key, None] = int(index)
    return found
