"""The outbox app: its tables are migrated into every producer's database."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    name = "outbox"
    label = "outbox"
    verbose_name = "Outbox"

    def ready(self) -> None:
        from outbox import checks  # noqa: F401  # registers the system checks
