from django.apps import AppConfig


class ConnectorsConfig(AppConfig):
    name = "attachments.connectors"
    label = "connectors"

    def ready(self) -> None:
        from attachments.connectors import checks  # noqa: F401  # importing registers the check
