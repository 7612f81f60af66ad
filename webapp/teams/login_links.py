"""One-time login links: the demo prints one, so that it needs no default password."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes, force_str
from django.utils.http import base36_to_int, urlsafe_base64_decode, urlsafe_base64_encode

from webapp.teams.models import User

LIFETIME_SECONDS = 24 * 3600


class LoginTokenGenerator(PasswordResetTokenGenerator):
    """Good once, because `last_login` enters the token, and for a day."""

    key_salt = "webapp.teams.login_links.LoginTokenGenerator"

    def check_token(self, user: User | None, token: str | None) -> bool:
        return super().check_token(user, token) and self._age(str(token)) <= LIFETIME_SECONDS

    def _age(self, token: str) -> float:
        return self._num_seconds(self._now()) - base36_to_int(token.split("-", maxsplit=1)[0])

    def _make_hash_value(self, user: AbstractBaseUser, timestamp: int) -> str:
        # Django's own drops the microseconds: a link used in the second of an earlier login would stay good.
        login = user.last_login.isoformat() if user.last_login else ""
        return f"{user.pk}{user.password}{login}{timestamp}"


_generator = LoginTokenGenerator()


def login_path(user: User) -> str:
    """Path of a new link that logs `user` in once, within a day."""
    return reverse("login-link", args=[urlsafe_base64_encode(force_bytes(user.pk)), _generator.make_token(user)])


def redeem(uidb64: str, token: str) -> User | None:
    """The user whom the link is for; None when it is used up, too old or forged. A second call gets None."""
    user = _user(uidb64)
    if user is None or not user.is_active or not _generator.check_token(user, token):
        return None
    unused = User.objects.filter(pk=user.pk, last_login=user.last_login)
    return user if unused.update(last_login=timezone.now()) else None


def _user(uidb64: str) -> User | None:
    try:
        return User.objects.filter(pk=int(force_str(urlsafe_base64_decode(uidb64)))).first()
    except (ValueError, OverflowError, UnicodeDecodeError):
        return None
