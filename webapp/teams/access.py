"""The access ladder: a stranger gets 404, a reader who would write gets 403."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied
from django.shortcuts import get_object_or_404

from webapp.teams.models import Membership, Team

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from webapp.teams.models import User


def get_team_or_404(user: User | AnonymousUser, slug: str) -> Team:
    """The team of that slug, if `user` belongs to it. Raises Http404."""
    return get_object_or_404(Team.objects.visible_to(user), slug=slug)


def may_write(user: User | AnonymousUser, team: Team) -> bool:
    """Whether `user` may submit and stop jobs of `team`."""
    return user.is_authenticated and Membership.objects.writing().filter(team=team, user_id=user.pk).exists()


def may_run_code(user: User | AnonymousUser, team: Team) -> bool:
    """Whether `user` may have Python modules of the library run on the hosts of `team`."""
    membership = Membership.objects.filter(team=team, user_id=user.pk).first() if user.is_authenticated else None
    return membership is not None and membership.may_run_code


def check_may_run_code(user: User | AnonymousUser, team: Team) -> None:
    """Raises PermissionDenied (403) for those who may not, saying who can help."""
    if not may_run_code(user, team):
        raise PermissionDenied(f"A Python module is code, and you may not run code. Ask an owner of {team}.")


def check_may_write(user: User | AnonymousUser, team: Team) -> User:
    """`user`, now known to be a writer.

    Raises PermissionDenied (403) for readers and strangers, saying who can help.
    """
    if not user.is_authenticated or not may_write(user, team):
        raise PermissionDenied(f"You may read what {team} does, not change it. Ask an owner of the team.")
    return user
