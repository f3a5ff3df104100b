"""Consumption: what stored telemetry comes to, per organisation and window."""

from django.apps import AppConfig


class ConsumptionConfig(AppConfig):
    name = "metering.consumption"
    label = "consumption"
    verbose_name = "Consumption"

    def ready(self) -> None:
        from metering.consumption import checks  # noqa: F401  # registers the system checks
