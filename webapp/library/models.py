"""What teams have uploaded: items with their versions, and uploads on their way to become one."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.jobs.models import Job
from webapp.teams.models import Team, User
from workers.contract.files.facts import Facts
from workers.contract.library import FORMATS, ModelFacts, Reference, Report

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser


class ItemQuerySet(models.QuerySet["Item"]):
    def visible_to(self, user: User | AnonymousUser) -> ItemQuerySet:
        """Items of the teams that `user` belongs to."""
        return self.filter(team__memberships__user_id=user.pk) if user.is_authenticated else self.none()

    def in_use(self) -> ItemQuerySet:
        """Those that nobody has put away."""
        return self.filter(archived__isnull=True)


class Item(models.Model):
    """A dataset or a model of a team under one name, whatever its versions."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="library")
    kind = models.CharField(max_length=10, choices=[("dataset", "Dataset"), ("model", "Model")])
    name = models.CharField(max_length=80)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    archived = models.DateTimeField(null=True)

    objects = ItemQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "kind", "name"], condition=Q(archived__isnull=True), name="library_name_in_team"
            )
        ]
        ordering = ["kind", "name"]

    def __str__(self) -> str:
        return self.name

    @property
    def latest(self) -> Version:
        """The newest version; an item has at least one."""
        return self.versions.order_by("-number")[0]


class Version(models.Model):
    """One file that has passed its check. It never changes, so that jobs keep the one that they ran with."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    format = models.CharField(max_length=40)
    filename = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    report_json = models.JSONField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "number"], name="library_version_number")]
        indexes = [models.Index(fields=["sha256"], name="library_version_sha")]
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"{self.item} v{self.number}"

    @property
    def reference(self) -> Reference:
        """What a spec calls it."""
        return Reference(self.pk, self.sha256)

    @property
    def report(self) -> Report:
        return Report.model_validate(self.report_json)

    @property
    def data(self) -> Facts | None:
        """What a dataset holds."""
        return self.report.dataset

    @property
    def facts(self) -> ModelFacts | None:
        """What a model is."""
        return self.report.model

    @property
    def format_title(self) -> str:
        return FORMATS[self.format].title

    @property
    def runs_code(self) -> bool:
        """Whether whoever trains it runs a program of whoever wrote it."""
        return self.format == "python_module"


class Use(models.Model):
    """A job that was submitted with a version."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="uses")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="library_uses")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "job"], name="library_use_once")]

    def __str__(self) -> str:
        return f"{self.version} in job {self.job_id}"


class UploadState(models.TextChoices):
    RECEIVING = "receiving", "Uploading"
    CHECKING = "checking", "Checking"
    REFUSED = "refused", "Refused"
    DONE = "done", "Ready"


class Upload(models.Model):
    """A file on its way: received in ranges, checked, then an Item's Version; or refused, with the reason."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="uploads")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    item = models.ForeignKey(Item, null=True, on_delete=models.SET_NULL, help_text="Whose next version it becomes.")
    name = models.CharField(max_length=80)
    format = models.CharField(max_length=40)
    filename = models.CharField(max_length=200)
    size = models.PositiveBigIntegerField()
    received = models.PositiveBigIntegerField(default=0)
    options = models.JSONField(default=dict, help_text="What a module is tried with: inputs, outputs.")
    sha256 = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=10, choices=UploadState.choices, default=UploadState.RECEIVING)
    reason = models.CharField(max_length=2000, blank=True, help_text="Why it was refused.")
    output = models.TextField(blank=True, help_text="What the throw-away process printed.")
    version = models.ForeignKey(Version, null=True, on_delete=models.SET_NULL, related_name="+")
    created = models.DateTimeField(auto_now_add=True)
    touched = models.DateTimeField(auto_now=True)
    asked = models.DateTimeField(null=True, help_text="When a host was last told to look at it.")
    asks = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-created"]

    def __str__(self) -> str:
        return f"{self.filename} ({self.state})"

    @property
    def kind(self) -> str:
        return FORMATS[self.format].kind

    @property
    def path(self) -> Path:
        """Where the bytes lie until the file is whole."""
        return Path(settings.LOCKSTEP_HOME) / "uploads" / str(self.pk)

    @property
    def public(self) -> dict[str, Any]:
        """As the upload page reads it."""
        return {
            "id": str(self.pk),
            "name": self.name,
            "filename": self.filename,
            "size": self.size,
            "received": self.received,
            "state": self.state,
            "reason": self.reason,
            "output": self.output,
            "item": self.version.item_id if self.version else None,
        }
