from django.apps import AppConfig


class OtlpConfig(AppConfig):
    name = "metering.otlp"
    label = "otlp"
    verbose_name = "Telemetry"
