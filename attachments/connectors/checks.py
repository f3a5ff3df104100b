"""System check: secrets can be sealed."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

SHORTEST_KEY = 32
"""Characters of a key that cannot be tried out."""


@register()
def sealing_keys_are_long(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Behind a short key, sealed secrets could be opened by whoever reads the database."""
    keys = settings.CONNECTOR_SEALING_KEYS
    if keys and all(len(key) >= SHORTEST_KEY for key in keys) and len(set(keys)) == len(keys):
        return []
    return [
        Error(
            f"CONNECTOR_SEALING_KEYS needs a key or several, each different and of {SHORTEST_KEY} characters or more.",
            hint="`openssl rand -hex 32`. A new one goes first; older ones stay until every secret was rotated.",
            id="connectors.E001",
        )
    ]
