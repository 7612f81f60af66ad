"""`manage.py createteam`."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from webapp.teams.models import Membership, Role, Team, User


def test_it_creates_a_team_with_its_owner(charlie: User) -> None:
    call_command("createteam", "robotics", owner=["charlie"])
    membership = Membership.objects.get(team__slug="robotics")
    assert (membership.user, membership.role, membership.team.name) == (charlie, Role.OWNER, "Robotics")


def test_it_adds_to_a_team_that_exists(team: Team, charlie: User) -> None:
    call_command("createteam", team.slug, reader=["charlie"])
    assert Membership.objects.get(team=team, user=charlie).role == Role.READER


@pytest.mark.parametrize(("slug", "owner", "said"), [("no good", [], "slug"), ("fine", ["nobody"], "no user 'nobody'")])
def test_it_changes_nothing_when_it_refuses(db: None, slug: str, owner: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("createteam", slug, owner=owner)
    assert not Team.objects.filter(slug=slug).exists()


def test_it_gives_members_the_right_to_run_code(team: Team, bob: User, rita: User) -> None:
    call_command("createteam", team.slug, code=["bob"])
    assert Membership.objects.get(user=bob).may_run_code
    with pytest.raises(CommandError, match="'rita' is no member"):
        call_command("createteam", team.slug, code=["rita"])
