from django.apps import AppConfig


class ClaimsConfig(AppConfig):
    name = "attachments.claims"
    label = "claims"
