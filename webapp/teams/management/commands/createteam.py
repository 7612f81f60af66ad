"""`manage.py createteam SLUG --owner USER`: a team, or one more member of it."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_slug
from django.db import transaction

from webapp.teams.models import Membership, Role, Team, User


class Command(BaseCommand):
    help = "Create a team, or add users to one that exists."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug", help="its name in addresses: vision")
        parser.add_argument("--name", help="its name for people (default: the slug, capitalised)")
        for role in Role:
            parser.add_argument(f"--{role}", action="append", default=[], metavar="USER", help=f"add as {role.label}")
        help_ = "let this member train with Python modules of the library, which are code"
        parser.add_argument("--code", action="append", default=[], metavar="USER", help=help_)

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["slug"]
        try:
            validate_slug(slug)
        except ValidationError:
            raise CommandError(f"slug: {slug!r} must consist of letters, digits, - and _") from None
        team, created = Team.objects.get_or_create(slug=slug, defaults={"name": options["name"] or slug.capitalize()})
        for role in Role:
            for name in options[role]:
                self._add(team, name, role)
        for name in options["code"]:
            if not Membership.objects.writing().filter(team=team, user__username=name).update(code=True):
                raise CommandError(f"--code: {name!r} is no member of {team}. Add them with --member {name}")
        self.stdout.write(f"{'Created' if created else 'Found'} {team.name} with {team.memberships.count()} members.")

    def _add(self, team: Team, name: str, role: Role) -> None:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"--{role}: there is no user {name!r}. Create one: manage.py createsuperuser")
        Membership.objects.update_or_create(team=team, user=user, defaults={"role": role})
