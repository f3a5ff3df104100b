from django.apps import AppConfig


class PricingConfig(AppConfig):
    name = "billing.pricing"
    label = "pricing"
