"""`manage.py loginlink USER`: one more link that logs a user in once."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.teams.login_links import login_path
from webapp.teams.models import User


class Command(BaseCommand):
    help = "Print a link that logs USER in once, within a day."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("user", help="the user name; the demo's is demo")
        parser.add_argument("--base", default="http://127.0.0.1:8000", help="where the site is (default: the demo)")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            known = ", ".join(User.objects.filter(is_active=True).values_list("username", flat=True)[:20]) or "none"
            raise CommandError(f"user: there is no active user {options['user']!r}. Known: {known}")
        self.stdout.write(options["base"].rstrip("/") + login_path(user))
