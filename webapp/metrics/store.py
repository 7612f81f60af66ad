"""The series store's door: what other rooms call.

append([batch(owner=7, name="loss", steps=..., times=..., values=...), ...]) -> [index of each batch's first point]
counts(7), read(7, names=["loss"], points=2000), read_since(7, {("loss", None): 120})
take_over(7, segment=2, step=50)
overview([7, 8, 9], names=["loss"], replica=None, points=1000), summaries([7, 8, 9])
"""

from collections.abc import Collection

from webapp.metrics.models import Series, Takeover
from webapp.metrics.points import Batch, Key, Points, batch
from webapp.metrics.reading import ANY, Curve, counts, overview, read, read_since
from webapp.metrics.summaries import Summary, summaries
from webapp.metrics.writing import append

__all__ = [
    "ANY",
    "Batch",
    "Curve",
    "Key",
    "Points",
    "Summary",
    "append",
    "batch",
    "counts",
    "forget",
    "overview",
    "read",
    "read_since",
    "summaries",
    "take_over",
]


def forget(owners: Collection[int]) -> None:
    """Delete every series of `owners`: to be called when what they belong to is deleted."""
    Series.objects.filter(owner__in=owners).delete()
    Takeover.objects.filter(owner__in=owners).delete()


def take_over(owner: int, *, segment: int, step: int) -> None:
    """`segment` goes on after `step`: what older segments hold beyond it is no more shown. It is not deleted."""
    Takeover.objects.update_or_create(owner=owner, segment=segment, defaults={"step": step})
