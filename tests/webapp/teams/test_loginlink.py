"""`manage.py loginlink`."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from webapp.teams.models import User


def test_it_prints_a_link_that_logs_in_once(client: Client, alice: User) -> None:
    out = io.StringIO()
    call_command("loginlink", "alice", base="http://testserver/", stdout=out)
    link = out.getvalue().strip()
    assert client.get(link).status_code == 302
    assert client.session["_auth_user_id"] == str(alice.pk)
    stranger = Client()
    stranger.get(link)
    assert "_auth_user_id" not in stranger.session


def test_it_names_the_known_users_for_an_unknown_one(alice: User) -> None:
    with pytest.raises(CommandError, match=r"no active user 'zoe'\. Known: alice"):
        call_command("loginlink", "zoe")
