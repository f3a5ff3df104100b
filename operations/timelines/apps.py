"""The read model's app: operation summaries, timelines and the exact identifier index, in core's database."""

from django.apps import AppConfig


class TimelinesConfig(AppConfig):
    name = "operations.timelines"
    label = "timelines"
    verbose_name = "Operations"
