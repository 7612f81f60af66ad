from django.apps import AppConfig


class ConfigureConfig(AppConfig):
    name = "webapp.configure"
    default_auto_field = "django.db.models.BigAutoField"
