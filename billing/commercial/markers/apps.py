"""Markers of business transactions: migrated into the database of every owner whose code reserves quota."""

from django.apps import AppConfig


class MarkersConfig(AppConfig):
    name = "billing.commercial.markers"
    label = "markers"
