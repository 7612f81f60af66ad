"""Who: users, teams, and what a member may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import AbstractUser
from django.db import models

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser


class User(AbstractUser):
    """Our own from the first migration, so that it can grow."""


class TeamQuerySet(models.QuerySet["Team"]):
    def visible_to(self, user: User | AnonymousUser) -> TeamQuerySet:
        """The teams that `user` belongs to; nobody sees another."""
        return self.filter(memberships__user_id=user.pk) if user.is_authenticated else self.none()


class Team(models.Model):
    slug = models.SlugField(unique=True, max_length=60)
    name = models.CharField(max_length=100)
    created = models.DateTimeField(auto_now_add=True)
    members: models.ManyToManyField[User, Membership] = models.ManyToManyField(
        User, through="Membership", related_name="teams"
    )

    objects = TeamQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    READER = "reader", "Reader"
    MEMBER = "member", "Member"
    OWNER = "owner", "Owner"


WRITERS = (Role.MEMBER, Role.OWNER)


class MembershipQuerySet(models.QuerySet["Membership"]):
    def writing(self) -> MembershipQuerySet:
        """Those who may change something in their team."""
        return self.filter(role__in=WRITERS)


class Membership(models.Model):
    """A user's place in a team; readers see everything and change nothing."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    code = models.BooleanField(
        default=False, help_text="May train with Python modules: run code on the hosts. Owners always may."
    )

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_membership_per_user_and_team")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"

    @property
    def may_write(self) -> bool:
        return self.role in WRITERS

    @property
    def may_run_code(self) -> bool:
        return self.role == Role.OWNER or (self.code and self.may_write)
