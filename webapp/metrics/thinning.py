"""Fewer points that tell the same story: extremes stay, and so does every kind of value that is no number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tsdownsample import MinMaxLTTBDownsampler

from webapp.metrics.codec import Floats, Ints

FEWEST = 16
"""Below this a curve has no shape, and its extremes and ends would not find a place."""
_downsampler = MinMaxLTTBDownsampler()  # type: ignore[no-untyped-call]


def thin(values: Floats, limit: int) -> Ints:
    """Indexes of at most `limit` (at least FEWEST) values: the ends, the extremes, a faithful shape between them.

    Runs of NaN or of an infinity keep their first and last point; of very many runs a quarter of `limit` is kept.
    """
    limit = max(limit, FEWEST)
    if len(values) <= limit:
        return np.arange(len(values), dtype=np.int64)
    finite = np.isfinite(values)
    if bool(finite.all()):
        return _shape(values, limit)
    odd = _news(values, finite, limit // 4)
    numbers = np.flatnonzero(finite)
    kept = _shape(values[numbers], limit - len(odd)) if len(numbers) else np.empty(0, np.int64)
    return np.sort(np.concatenate([odd, numbers[kept]]))


def _shape(values: Floats, limit: int) -> Ints:
    if len(values) <= limit:
        return np.arange(len(values), dtype=np.int64)
    # The triangles of LTTB choose one point a bucket; the two extremes of all are not left to them.
    chosen = _downsampler.downsample(np.ascontiguousarray(values), n_out=limit - 2)
    extremes = [int(values.argmin()), int(values.argmax())]
    kept: Ints = np.unique(np.concatenate([chosen.astype(np.int64), np.array(extremes, np.int64)]))
    return kept


def _news(values: Floats, finite: npt.NDArray[np.bool_], limit: int) -> Ints:
    kind = np.where(finite, 0, np.where(np.isnan(values), 1, np.where(values > 0, 2, 3)))
    change = np.flatnonzero(np.diff(kind))
    edges: Ints = np.unique(np.concatenate([[0], change, change + 1, [len(values) - 1]])).astype(np.int64)
    edges = edges[~finite[edges]]
    if len(edges) <= limit:
        return edges
    firsts = [edges[kind[edges] == k][:1] for k in (1, 2, 3)]
    spread = edges[np.linspace(0, len(edges) - 1, limit - 3).astype(np.int64)]
    kept: Ints = np.unique(np.concatenate([spread, *firsts]))
    return kept
