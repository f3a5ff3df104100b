"""The roof as a Django app: management commands, templates, system checks."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
    label = "config"

    def ready(self) -> None:
        # Without the project's Celery application a task would be sent to Celery's own default broker.
        from config import celery, checks  # noqa: F401  # importing registers the application and the checks
