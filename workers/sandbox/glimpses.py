"""Arrays as something to look at: pictures as PNG, anything else as rows of figures."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from workers.contract.library import Preview

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS, COLUMNS, PICTURES = 8, 30, 18
CELL = 200
MOST_SIDE = 1_024
SIDE = 64
"""Pixels of a picture that is drawn from an array; of a larger one every n-th pixel is."""
TOTAL = 500_000
"""Letters of all pictures together: a report has room for no more."""


def of_arrays(features: NDArray[Any], targets: NDArray[Any] | None, *, names: Sequence[str] = ()) -> Preview:
    """The first examples of features [examples, ...], `names` those of their columns."""
    labels = [_label(value) for value in targets] if targets is not None else [""] * len(features)
    if _pictures(features.shape):
        step = -(-max(features.shape[1:3]) // SIDE)
        shown = (address("png", png(_bytes(one[::step, ::step]))) for one in features[:PICTURES])
        return Preview(pictures=within(zip(labels, shown, strict=False)))
    rows = features[:ROWS].reshape(min(len(features), ROWS), -1)[:, : COLUMNS - 1]
    names = names or [f"{number}" for number in range(rows.shape[1])]
    head = [*names[: rows.shape[1]], *(["target"] if targets is not None else [])]
    figures = [[_figure(float(value)) for value in row] for row in rows]
    tails = [[label] if targets is not None else [] for label in labels]
    return Preview(rows=(cells(head), *(cells([*row, *tail]) for row, tail in zip(figures, tails, strict=False))))


def within(pictures: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """As many of the labelled addresses as there is room for."""
    kept: list[tuple[str, str]] = []
    for label, picture in pictures:
        if sum(len(one) for _, one in kept) + len(picture) > TOTAL:
            break
        kept.append((label[:CELL], picture))
    return tuple(kept)


def cells(row: Iterable[str]) -> tuple[str, ...]:
    """A row that fits a page."""
    return tuple(cell[:CELL] for cell in list(row)[:COLUMNS])


def address(kind: str, content: bytes) -> str:
    """A picture as a `data:` address."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def png(pixels: NDArray[Any]) -> bytes:
    """A picture, uint8 [height, width] or [height, width, 1 or 3] (https://www.w3.org/TR/png-3/)."""
    height, width = pixels.shape[:2]
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    colour = 2 if pixels.ndim > 2 and pixels.shape[2] == 3 else 0
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _pictures(shape: tuple[int, ...]) -> bool:
    sides = shape[1:3]
    coloured = len(shape) == 4 and shape[3] in (1, 3)
    return (len(shape) == 3 or coloured) and all(4 <= side <= MOST_SIDE for side in sides)


def _bytes(picture: NDArray[Any]) -> NDArray[Any]:
    """Uint8; other numbers are stretched from their least to their greatest."""
    import numpy as np

    if picture.dtype == np.uint8:
        return picture
    values = np.nan_to_num(picture.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = values.min(), values.max()
    return np.asarray((values - low) / ((high - low) or 1) * 255, np.uint8)


def _figure(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() else f"{value:.4g}"


def _label(value: Any) -> str:
    import numpy as np

    flat = np.ravel(value)
    return f"{float(flat[0]):.6g}" if len(flat) == 1 else ", ".join(f"{float(each):.4g}" for each in flat[:4])
