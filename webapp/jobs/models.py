"""What was asked for and what became of it: Job, its Attempts, their Processes."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.teams.models import Team
from workers.contract.spec import JobSpec


class State(models.TextChoices):
    QUEUED = "queued", "Queued"
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    STOPPING = "stopping", "Stopping"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


ENDED = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
ON_HOSTS = (State.STARTING, State.RUNNING, State.STOPPING)
ACTIVE = (State.QUEUED, *ON_HOSTS)


class Job(models.Model):
    """One job of a team. `state` is written by the compare-and-set methods only, all in the control plane."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="jobs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(max_length=120)
    spec_json = models.JSONField()
    # Copies of the spec and of its arithmetic, so that lists sort and filter without opening it.
    dataset = models.CharField(max_length=100)
    model = models.CharField(max_length=100)
    strategy = models.CharField(max_length=100)
    replicas = models.PositiveIntegerField()
    total_steps = models.PositiveBigIntegerField()
    steps_per_epoch = models.PositiveBigIntegerField()

    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    reason = models.CharField(max_length=500, blank=True, help_text="Why it waits.")
    stop_requested = models.DateTimeField(null=True)
    cause = models.CharField(max_length=1000, blank=True, help_text="Why it ended as it did, one sentence.")
    failed_process = models.CharField(max_length=40, blank=True)
    log_tail = models.TextField(blank=True)

    phase = models.CharField(max_length=20, blank=True)
    phase_detail = models.CharField(max_length=300, blank=True)
    step = models.PositiveBigIntegerField(default=0)
    epoch = models.PositiveIntegerField(default=0)
    latest = models.JSONField(default=dict, help_text="Newest value of each series of the whole job, by name.")
    spark = models.JSONField(default=list, help_text="The loss in at most 80 [step, value] pairs, thinned as it grows.")
    started_info = models.JSONField(default=dict, help_text="The engine's Started event.")
    artifacts = models.JSONField(default=list)

    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True, help_text="When its processes were launched.")
    first_step = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    revision = models.PositiveBigIntegerField(default=0, help_text="Grows with every change that a page shows.")

    class Meta:
        indexes = [
            models.Index(fields=["team", "-id"], name="job_team_newest"),
            models.Index(fields=["team", "state", "-id"], name="job_team_state"),
            models.Index(fields=["state", "id"], name="job_state_oldest"),
        ]
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def spec(self) -> JobSpec:
        """The spec as its type; it was checked when it was submitted."""
        return JobSpec.model_validate(self.spec_json)


class Attempt(models.Model):
    """One launch of the gang. Its primary key is the fencing number that everything from hosts carries."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    assignment = models.JSONField()
    created = models.DateTimeField(auto_now_add=True)
    sent = models.DateTimeField(null=True, help_text="When the launch was last put on the hosts' queues.")
    stop_sent = models.DateTimeField(null=True)
    heard = models.DateTimeField(null=True, help_text="Database time of the last word from a supervisor.")
    ended = models.DateTimeField(null=True, help_text="Once set, state changes from its hosts are refused.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="attempt_number")]
        ordering = ["id"]

    def __str__(self) -> str:
        return f"attempt {self.number} of job {self.job_id}"


class Process(models.Model):
    """One operating-system process of an attempt on one host."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="processes")
    name = models.CharField(max_length=40)
    role = models.CharField(max_length=10)
    index = models.PositiveIntegerField()
    host = models.CharField(max_length=100)
    devices = models.JSONField(default=list, help_text="As shown: cpu:0, gpu:1.")
    replicas = models.JSONField(default=list)
    pid = models.PositiveIntegerField(null=True)
    phase = models.CharField(max_length=20, blank=True)
    exit_code = models.IntegerField(null=True)
    exit_signal = models.CharField(max_length=20, blank=True)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "name"], name="process_name")]
        ordering = ["attempt", "role", "index"]

    def __str__(self) -> str:
        return f"{self.name} of {self.attempt}"
