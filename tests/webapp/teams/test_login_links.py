from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from webapp.teams import login_links
from webapp.teams.models import Team, User


def logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_it_logs_in_once_and_opens_the_page_asked_for(client: Client, team: Team, alice: User) -> None:
    link = login_links.login_path(alice)
    answer = client.get(link, {"next": "/t/vision/jobs/new/"})
    assert (answer.status_code, answer["Location"]) == (302, "/t/vision/jobs/new/")
    assert logged_in(client)
    again = Client()
    assert again.get(link)["Location"] == reverse("login")
    assert not logged_in(again)


def test_it_only_redirects_within_the_site(client: Client, alice: User) -> None:
    answer = client.get(login_links.login_path(alice), {"next": "https://evil.example/"})
    assert answer["Location"] == reverse("home")


def test_it_takes_its_own_person_home_when_the_link_was_used(client: Client, alice: User) -> None:
    link = login_links.login_path(alice)
    client.get(link)
    assert client.get(link)["Location"] == reverse("home")


def test_it_is_too_old_after_a_day(monkeypatch: pytest.MonkeyPatch, client: Client, alice: User) -> None:
    link = login_links.login_path(alice)
    later = datetime.now() + timedelta(days=1, seconds=1)
    monkeypatch.setattr(login_links.LoginTokenGenerator, "_now", lambda self: later)
    client.get(link)
    assert not logged_in(client)


@pytest.mark.parametrize("change", ["inactive", "password", "forged", "nobody"])
def test_it_refuses(client: Client, alice: User, change: str) -> None:
    link = login_links.login_path(alice)
    if change == "inactive":
        User.objects.filter(pk=alice.pk).update(is_active=False)
    elif change == "password":
        alice.set_password("another horse battery")
        alice.save()
    elif change == "forged":
        link = link[:-2] + ("a/" if link[-2] != "a" else "b/")
    else:
        link = reverse("login-link", args=["%%%", "x"])
    assert client.get(link).status_code == 302
    assert not logged_in(client)


def test_it_lets_one_of_two_at_the_same_moment_win(alice: User) -> None:
    uid, token = login_links.login_path(alice).rstrip("/").split("/")[-2:]
    assert [login_links.redeem(uid, token), login_links.redeem(uid, token)] == [alice, None]
