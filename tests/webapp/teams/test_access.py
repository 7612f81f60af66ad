from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from webapp.teams import access
from webapp.teams.models import Team, User


def test_it_finds_a_team_for_its_people_only(team: Team, rita: User, charlie: User) -> None:
    assert access.get_team_or_404(rita, "vision") == team
    for stranger in (charlie, AnonymousUser()):
        with pytest.raises(Http404):
            access.get_team_or_404(stranger, "vision")


def test_it_lets_owners_and_members_write_and_nobody_else(
    team: Team, alice: User, bob: User, rita: User, charlie: User
) -> None:
    assert access.check_may_write(alice, team) == alice
    assert access.check_may_write(bob, team) == bob
    for other in (rita, charlie, AnonymousUser()):
        with pytest.raises(PermissionDenied, match="Ask an owner"):
            access.check_may_write(other, team)
