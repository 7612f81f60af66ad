"""The app of users and teams; it also registers the checks of the environment."""

from django.apps import AppConfig
from django.core.checks import Tags, register


class TeamsConfig(AppConfig):
    name = "webapp.teams"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from webapp.teams import checks

        register(checks.check_redis_url)
        register(checks.check_secret_key, Tags.security)
