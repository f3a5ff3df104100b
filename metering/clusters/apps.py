from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "metering.clusters"
    label = "clusters"

    def ready(self) -> None:
        from metering.clusters import checks  # noqa: F401  # importing registers the check
