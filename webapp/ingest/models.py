"""How far each file of each attempt has been taken in, and the lines of its logs."""

from __future__ import annotations

from django.db import models

from webapp.jobs.models import Attempt, Job


class Source(models.Model):
    """One file of an attempt on its host. `committed` bytes of it are in this database, each exactly once."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="sources")
    name = models.CharField(max_length=200)
    committed = models.PositiveBigIntegerField(default=0)
    held = models.BinaryField(default=b"", help_text="Committed bytes behind the last newline, not shown yet.")
    held_since = models.DateTimeField(null=True, help_text="Since when a log's `held` waits for the rest of its line.")
    shown = models.BooleanField(default=False, help_text="A beginning of the line that `held` belongs to is stored.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "name"], name="source_of_attempt")]
        indexes = [
            models.Index(fields=["held_since"], condition=models.Q(held_since__isnull=False), name="source_waiting")
        ]

    def __str__(self) -> str:
        return f"{self.name} of attempt {self.attempt_id}"


class LogLine(models.Model):
    """One line of a process's output, or a piece of a long one; the newest has the highest id within its job.

    Bytes that are not UTF-8 are kept as `\\xff`. `time` is when the host sent it, in seconds since 1970.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="log_lines", db_index=False)
    attempt = models.PositiveBigIntegerField(help_text="Primary key of the attempt.")
    process = models.CharField(max_length=120)
    stream = models.CharField(max_length=6)
    time = models.FloatField()
    text = models.TextField()
    partial = models.BooleanField(default=False, help_text="No newline followed: the next piece continues the line.")

    class Meta:
        indexes = [
            models.Index(fields=["job", "id"], name="log_of_job"),
            models.Index(fields=["job", "process", "stream", "id"], name="log_of_process"),
        ]
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text
