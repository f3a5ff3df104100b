"""The projector's app: receipts, aggregates, gaps and builds, in core's database."""

from django.apps import AppConfig


class ProjectorConfig(AppConfig):
    name = "operations.projector"
    label = "projector"
    verbose_name = "Projector"
