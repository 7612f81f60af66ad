"""What base.html needs on every page: icons, the user's teams, and whether the user may change something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.teams import access
from webapp.teams.models import Team

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from webapp.teams.models import User

register = template.Library()


@register.simple_tag
def icon(name: str, title: str = "") -> SafeString:
    """A picture of static/img/icons.svg in the colour of the text; without a title it is decoration."""
    href = f"{static('img/icons.svg')}#{name}"
    if title:
        return format_html('<svg class="icon" role="img"><title>{}</title><use href="{}"></use></svg>', title, href)
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"></use></svg>', href)


@register.simple_tag
def icons_url() -> str:
    """Where scripts find the sprite."""
    return static("img/icons.svg")


@register.simple_tag
def teams_of(user: User | AnonymousUser) -> list[Team]:
    """The teams that a user can switch between, by name."""
    return list(Team.objects.visible_to(user))


@register.simple_tag
def may_write(user: User | AnonymousUser, team: Team | None) -> bool:
    """Whether pages of `team` offer this user to submit and stop jobs."""
    return isinstance(team, Team) and access.may_write(user, team)


@register.filter
def initials(user: Any) -> str:
    """Two letters for the user menu."""
    words = (user.get_full_name() or user.get_username()).replace(".", " ").replace("_", " ").split()
    return "".join(word[0] for word in words[:2]).upper() or "?"


@register.filter
def typed_at(typed: Mapping[str, str], name: str) -> str:
    """What stands in a field whose name has dots."""
    return typed.get(name, "")
