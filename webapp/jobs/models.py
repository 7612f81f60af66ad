"""What was asked for and what became of it: Job, its Attempts, their Supervisors and Processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from webapp.jobs.states import ACTIVE, ENDED, ON_HOSTS, State
from webapp.teams.models import Team, User
from workers.contract.spec import JobSpec
from workers.contract.store import checkpoint_key

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

__all__ = ["ACTIVE", "ENDED", "ON_HOSTS", "Attempt", "Change", "Checkpoint", "Job", "Process", "State", "Supervisor"]

HEAVY = ("spec_json", "log_tail", "started_info", "artifacts")


class JobQuerySet(models.QuerySet["Job"]):
    def visible_to(self, user: User | AnonymousUser) -> JobQuerySet:
        """Jobs of the teams that `user` belongs to."""
        return self.filter(team__memberships__user_id=user.pk) if user.is_authenticated else self.none()

    def of_team(self, team: Team) -> JobQuerySet:
        return self.filter(team=team)

    def newest_first(self) -> JobQuerySet:
        return self.order_by("-id")

    def oldest_first(self) -> JobQuerySet:
        return self.order_by("id")

    def queued(self) -> JobQuerySet:
        return self.filter(state=State.QUEUED)

    def active(self) -> JobQuerySet:
        """Not ended yet."""
        return self.filter(state__in=ACTIVE)

    def on_hosts(self) -> JobQuerySet:
        """Placed, and not ended yet."""
        return self.filter(state__in=ON_HOSTS)

    def unfinished(self) -> JobQuerySet:
        """Active or paused: what they need is kept."""
        return self.exclude(state__in=ENDED)

    def has_ended(self) -> JobQuerySet:
        return self.filter(state__in=ENDED)

    def for_rows(self) -> JobQuerySet:
        """As a table shows them: the owner joined, the heavy columns left out."""
        return self.select_related("owner").defer(*HEAVY)


class AttemptQuerySet(models.QuerySet["Attempt"]):
    def live(self) -> AttemptQuerySet:
        """Those whose hosts still have the word."""
        return self.filter(ended__isnull=True)


class Job(models.Model):
    """One job of a team. `state` is written by webapp/jobs/transitions.py only, all in the control plane."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="jobs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(max_length=120)
    spec_json = models.JSONField()
    # Copies of the spec and of its arithmetic, so that lists sort and filter without opening it.
    kind = models.CharField(max_length=10, default="train")
    dataset = models.CharField(max_length=100)
    model = models.CharField(max_length=100)
    strategy = models.CharField(max_length=100)
    tags = models.CharField(max_length=1000, blank=True, help_text="Each between blanks: ' baseline seed-1 '.")
    replicas = models.PositiveIntegerField()
    total_steps = models.PositiveBigIntegerField()
    steps_per_epoch = models.PositiveBigIntegerField()
    global_batch = models.PositiveIntegerField(default=1)

    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    reason = models.CharField(max_length=500, blank=True, help_text="Why it waits.")
    stop_requested = models.DateTimeField(null=True)
    stop_requested_by = models.CharField(max_length=150, blank=True, help_text="Their name, as shown.")
    save_requested = models.DateTimeField(null=True, help_text="Until the checkpoint asked for is there.")
    paused = models.DateTimeField(null=True, help_text="While it is paused: since when.")
    resume_checkpoint = models.ForeignKey(
        "Checkpoint",
        on_delete=models.SET_NULL,
        null=True,
        related_name="awaited_by",
        help_text="What its next or newest attempt goes on from.",
    )
    resume_step = models.PositiveBigIntegerField(null=True, help_text="The step of that checkpoint.")
    cause = models.CharField(max_length=1000, blank=True, help_text="Why it ended as it did, one sentence.")
    failed_process = models.CharField(max_length=40, blank=True)
    log_tail = models.TextField(blank=True)

    phase = models.CharField(max_length=20, blank=True, help_text="The chief's.")
    phase_detail = models.CharField(max_length=300, blank=True)
    processes_total = models.PositiveIntegerField(default=0)
    processes_up = models.PositiveIntegerField(default=0, help_text="Processes that have said anything.")
    step = models.PositiveBigIntegerField(default=0)
    epoch = models.PositiveIntegerField(default=0)
    latest = models.JSONField(default=dict, help_text="Newest value of each series of the whole job, by name.")
    # Sortable copies out of `latest`; null where the value is not finite.
    loss = models.FloatField(null=True)
    accuracy = models.FloatField(null=True)
    throughput = models.FloatField(null=True)
    spark = models.JSONField(default=list, help_text="The loss in at most 80 [step, value] pairs, thinned as it grows.")
    started_info = models.JSONField(default=dict, help_text="The engine's Started event.")
    artifacts = models.JSONField(default=list)

    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True, help_text="When its processes were launched.")
    first_step = models.DateTimeField(null=True)
    attempt_first_step = models.DateTimeField(null=True, help_text="The same of its newest attempt.")
    earlier_seconds = models.FloatField(default=0.0, help_text="How long its earlier attempts have trained.")
    segment = models.PositiveIntegerField(default=1, help_text="Number of the newest attempt that has begun to train.")
    ended = models.DateTimeField(null=True)
    revision = models.PositiveBigIntegerField(default=0, help_text="Grows with every change that a page shows.")

    objects = JobQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["team", "-id"], name="job_team_newest"),
            models.Index(fields=["team", "state", "-id"], name="job_team_state"),
            models.Index(fields=["team", "name", "-id"], name="job_team_name"),
            models.Index(fields=["team", "loss", "-id"], name="job_team_loss"),
            models.Index(fields=["team", "throughput", "-id"], name="job_team_throughput"),
            models.Index(fields=["state", "id"], name="job_state_oldest"),
        ]
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    @property
    def spec(self) -> JobSpec:
        """The spec as its type; it was checked when it was submitted."""
        return JobSpec.model_validate(self.spec_json)

    @property
    def trains(self) -> bool:
        """Whether it takes steps; only then is there anything to pause, to save and to go on from."""
        return self.kind == "train"

    @property
    def current_attempt(self) -> Attempt | None:
        """The newest launch of its gang; None while it has never been placed."""
        return self.attempts.order_by("-id").first()


class Attempt(models.Model):
    """One launch of the gang. Its primary key is the fencing number that everything from hosts carries."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    assignment = models.JSONField()
    resume_step = models.PositiveBigIntegerField(null=True, help_text="Of the checkpoint that it goes on from.")
    created = models.DateTimeField(auto_now_add=True)
    ended = models.DateTimeField(null=True, help_text="Once set, state changes from its hosts are refused.")

    objects = AttemptQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="attempt_number")]
        indexes = [models.Index(fields=["ended"], name="attempt_ended")]
        ordering = ["id"]

    def __str__(self) -> str:
        return f"attempt {self.number} of job {self.job_id}"


class Supervisor(models.Model):
    """The supervisor of one attempt on one host: what it was sent, when it was heard, and its last word."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="supervisors")
    host = models.CharField(max_length=100)
    sent = models.DateTimeField(null=True, help_text="When the launch was last put on the host's queue.")
    stop_sent = models.DateTimeField(null=True)
    pause_sent = models.DateTimeField(null=True)
    heard = models.DateTimeField(null=True, help_text="Database time of its last word.")
    # Its Ended event. Empty while it lives.
    outcome = models.CharField(max_length=10, blank=True)
    cause = models.CharField(max_length=1000, blank=True)
    target = models.CharField(max_length=40, blank=True)
    log_tail = models.TextField(blank=True)
    ended = models.DateTimeField(null=True)
    holds = models.BooleanField(default=False, help_text="Files that the artifact store lacks lie on its host.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "host"], name="supervisor_of_host")]
        indexes = [models.Index(fields=["attempt"], condition=models.Q(holds=True), name="supervisor_holds")]
        ordering = ["attempt", "host"]

    def __str__(self) -> str:
        return f"supervisor of {self.attempt} on {self.host}"


class Process(models.Model):
    """One operating-system process of an attempt on one host."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="processes")
    name = models.CharField(max_length=40)
    role = models.CharField(max_length=10)
    index = models.PositiveIntegerField()
    host = models.CharField(max_length=100)
    chief = models.BooleanField(default=False)
    devices = models.JSONField(default=list, help_text="As shown: cpu:0, gpu:1.")
    replicas = models.JSONField(default=list)
    pid = models.PositiveIntegerField(null=True)
    phase = models.CharField(max_length=20, blank=True)
    cause = models.CharField(max_length=1000, blank=True, help_text="Its own words on why it failed.")
    exit_code = models.IntegerField(null=True)
    exit_signal = models.CharField(max_length=20, blank=True)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "name"], name="process_name")]
        ordering = ["attempt", "role", "index"]

    def __str__(self) -> str:
        return f"{self.name} of {self.attempt}"


class Change(models.Model):
    """A change of a job's state, or the first time that an attempt came to a phase. Rows are only added."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="changes")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, null=True, related_name="changes")
    time = models.DateTimeField()
    state = models.CharField(max_length=12, choices=State.choices, blank=True)
    phase = models.CharField(max_length=20, blank=True)
    detail = models.CharField(max_length=1000, blank=True, help_text="By whom, on which hosts, or why.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "phase"], name="change_phase")]
        indexes = [models.Index(fields=["job", "-time", "-id"], name="change_newest")]
        ordering = ["job", "time", "id"]

    def __str__(self) -> str:
        return f"job {self.job_id} {self.state or self.phase}"


class CheckpointQuerySet(models.QuerySet["Checkpoint"]):
    def in_store(self) -> CheckpointQuerySet:
        """Those that a job can go on from."""
        return self.filter(stored__isnull=False)

    def newest_first(self) -> CheckpointQuerySet:
        return self.order_by("-attempt", "-step")


class Checkpoint(models.Model):
    """A state of the training that a job can go on from. Its files lie in the artifact store once `stored` is set."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="checkpoints")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="checkpoints")
    name = models.CharField(max_length=40)
    step = models.PositiveBigIntegerField()
    samples_seen = models.PositiveBigIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True, help_text="Of its manifest.")
    seconds = models.FloatField(default=0.0, help_text="How long it took to write.")
    metrics = models.JSONField(default=dict, help_text="The newest values then.")
    best = models.BooleanField(default=False)
    host = models.CharField(max_length=100, blank=True)
    path = models.CharField(max_length=4096, blank=True, help_text="Its folder on that host.")
    created = models.DateTimeField(null=True)
    stored = models.DateTimeField(null=True)
    dropped = models.DateTimeField(null=True, help_text="When it gave way to newer ones.")
    problem = models.CharField(max_length=1000, blank=True, help_text="Why it could not be stored.")

    objects = CheckpointQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "name"], name="checkpoint_name")]
        indexes = [models.Index(fields=["job", "-attempt", "-step"], name="checkpoint_newest")]
        ordering = ["job", "-attempt", "-step"]

    def __str__(self) -> str:
        return f"{self.name} of job {self.job_id}"

    @property
    def key(self) -> str:
        """Its folder in the artifact store."""
        return checkpoint_key(self.job_id, self.name)
