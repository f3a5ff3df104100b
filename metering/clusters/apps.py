from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "metering.clusters"
    label = "clusters"
