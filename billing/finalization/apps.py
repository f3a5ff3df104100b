from django.apps import AppConfig


class FinalizationConfig(AppConfig):
    name = "billing.finalization"
    label = "finalization"
