"""What there is to run on: training hosts and their devices; and whether their words reach us."""

from __future__ import annotations

from datetime import timedelta

from django.db import models

from webapp.cluster.clock import database_now
from webapp.jobs.models import Attempt
from workers.contract.inventory import Inventory, SelfTest
from workers.contract.wire import LEASE_SECONDS

KNOWN_FOR = timedelta(days=1)


class HostQuerySet(models.QuerySet["Host"]):
    def online(self) -> HostQuerySet:
        """Heard within the lease; only these are given work."""
        return self.filter(heard__gt=database_now() - timedelta(seconds=LEASE_SECONDS))

    def known(self) -> HostQuerySet:
        """Heard within a day: a host that restarts still counts when a job is checked."""
        return self.filter(heard__gt=database_now() - KNOWN_FOR)


class Host(models.Model):
    """A training host as it last described itself."""

    name = models.CharField(max_length=100, unique=True)
    heard = models.DateTimeField(help_text="Database time of its last word.")
    inventory_json = models.JSONField()
    selftest_json = models.JSONField(null=True, help_text="The newest results of its self-test; none before the first.")

    objects = HostQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def inventory(self) -> Inventory:
        return Inventory.model_validate(self.inventory_json)

    @property
    def selftest(self) -> SelfTest | None:
        return None if self.selftest_json is None else SelfTest.model_validate(self.selftest_json)


class Device(models.Model):
    """One place for a process; `attempt` is who has it. Taken by a filtered UPDATE that counts its rows."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="devices")
    kind = models.CharField(max_length=3)
    index = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    memory_bytes = models.PositiveBigIntegerField(null=True)
    attempt = models.ForeignKey(Attempt, null=True, on_delete=models.SET_NULL, related_name="held_devices")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "kind", "index"], name="device_of_host")]
        ordering = ["host", "kind", "index"]

    def __str__(self) -> str:
        return f"{self.host} {self.kind}:{self.index}"


class Listening(models.Model):
    """Since when ingest has been listening without a gap: silence counts only while somebody listens. One row."""

    since = models.DateTimeField()
    last = models.DateTimeField()

    def __str__(self) -> str:
        return f"listening since {self.since:%H:%M:%S}"
