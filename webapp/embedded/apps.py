from django.apps import AppConfig


class EmbeddedConfig(AppConfig):
    name = "webapp.embedded"
    default_auto_field = "django.db.models.BigAutoField"
