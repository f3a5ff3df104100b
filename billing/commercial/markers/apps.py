"""The markers of business transactions: their table is migrated into the database of every owner that reserves quota."""

from django.apps import AppConfig


class MarkersConfig(AppConfig):
    name = "billing.commercial.markers"
    label = "markers"
