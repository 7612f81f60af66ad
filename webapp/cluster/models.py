"""What there is to run on: training hosts and their devices."""

from __future__ import annotations

from django.db import models

from webapp.jobs.models import Attempt
from workers.contract.inventory import Inventory


class Host(models.Model):
    """A training host as it last described itself."""

    name = models.CharField(max_length=100, unique=True)
    heard = models.DateTimeField(help_text="Database time of its last word.")
    inventory_json = models.JSONField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def inventory(self) -> Inventory:
        return Inventory.model_validate(self.inventory_json)


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
