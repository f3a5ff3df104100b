from django.apps import AppConfig


class CommercialConfig(AppConfig):
    name = "billing.commercial"
    label = "commercial"

    def ready(self) -> None:
        from billing.commercial import checks  # noqa: F401  # registers the system check
