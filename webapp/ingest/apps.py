from django.apps import AppConfig


class IngestConfig(AppConfig):
    name = "webapp.ingest"
    default_auto_field = "django.db.models.BigAutoField"
