"""The series store's tables: a series of numbers by step, and the blocks that hold its points."""

from __future__ import annotations

from django.db import models

WHOLE = -1
"""`Series.replica` of a series that concerns its owner as a whole; a NULL would not be unique."""


class Series(models.Model):
    """One curve. `owner` is a plain number, so that this room need not know what it belongs to."""

    owner = models.BigIntegerField()
    name = models.CharField(max_length=100)
    replica = models.IntegerField(default=WHOLE)
    count = models.PositiveBigIntegerField(default=0, help_text="Points ever appended: the next point's index.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name", "replica"], name="series_key")]

    def __str__(self) -> str:
        return self.name if self.replica == WHOLE else f"{self.name}.{self.replica}"


class Block(models.Model):
    """Up to 4,096 points as compressed columns, and what an overview needs in plain ones.

    Figures are over the finite values only, NULL where there are none; `first` and `last` are NULL where NaN.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="blocks")
    start = models.PositiveBigIntegerField(help_text="Index of its first point in the series.")
    segment = models.PositiveIntegerField(help_text="Grows with each restart of what is measured.")
    packed = models.BooleanField(help_text="Compressed; the other kind is the short, often rewritten tail.")
    count = models.PositiveIntegerField()
    first_step = models.BigIntegerField()
    last_step = models.BigIntegerField()
    first = models.FloatField(null=True)
    last = models.FloatField(null=True)
    min = models.FloatField(null=True)
    min_step = models.BigIntegerField(null=True)
    max = models.FloatField(null=True)
    max_step = models.BigIntegerField(null=True)
    sum = models.FloatField(null=True)
    finite = models.PositiveIntegerField()
    steps = models.BinaryField()
    times = models.BinaryField()
    values = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["series", "start"], name="block_start")]
        indexes = [models.Index(fields=["series"], condition=models.Q(packed=False), name="block_tail")]

    def __str__(self) -> str:
        return f"{self.count} points from {self.start}"


class Takeover(models.Model):
    """Where a segment took over: it goes on after `step`, and what older ones hold beyond it is history no more."""

    owner = models.BigIntegerField()
    segment = models.PositiveIntegerField()
    step = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "segment"], name="takeover_segment")]

    def __str__(self) -> str:
        return f"segment {self.segment} of {self.owner} after step {self.step}"
