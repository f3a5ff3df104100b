from django.apps import AppConfig


class TelemetryChargesConfig(AppConfig):
    name = "billing.telemetry_charges"
    label = "telemetry_charges"
