"""The OTLP receiver and its store of record."""

from django.apps import AppConfig


class OtlpConfig(AppConfig):
    name = "metering.otlp"
    label = "otlp"
    verbose_name = "Telemetry"

    def ready(self) -> None:
        from metering.otlp import checks  # noqa: F401  # registers the system check
