"""The roof as a Django app: management commands, templates, system checks."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
    label = "config"
