"""System check: the secret store that the settings name is there and has what it needs."""

from typing import Any

from django.core.checks import Error, register
from django.core.exceptions import ImproperlyConfigured

from metering.clusters.secret_store import secret_store


@register()
def secret_store_can_be_made(app_configs: Any, **kwargs: Any) -> list[Error]:
    """It is made and not asked: a store that is away for a moment keeps nothing from starting."""
    try:
        secret_store()
    except (ImportError, ImproperlyConfigured, TypeError) as error:
        return [Error(f"OTLP_SECRET_STORE: {error}", hint="See docs/settings.md.", id="clusters.E001")]
    return []
