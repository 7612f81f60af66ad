from django.apps import AppConfig


class LibraryConfig(AppConfig):
    name = "webapp.library"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from webapp.cluster import control
        from webapp.library import checks

        control.CHORES.append(checks.turn)
