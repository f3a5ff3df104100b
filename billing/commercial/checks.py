"""System checks of the commercial boundary."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

SHORTEST_KEY = 32
"""Characters of a key whose hashes cannot be tried out."""


@register()
def the_hash_key_is_long(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Identifiers can be guessed; behind a short key their hashes would give them away."""
    if len(settings.COMMERCIAL_HASH_KEY) >= SHORTEST_KEY:
        return []
    return [
        Error(
            f"COMMERCIAL_HASH_KEY has fewer than {SHORTEST_KEY} characters.",
            hint="Before the first operation: `openssl rand -hex 32`. Afterwards it never changes.",
            id="commercial.E001",
        )
    ]
