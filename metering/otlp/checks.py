"""System check: days of telemetry are not removed before every resend of them has to be over."""

from typing import Any

from django.conf import settings
from django.core.checks import Error, register

SHORTEST_DAYS = 35
"""The database keeps this many days whatever is asked: longer than any queue of a collector holds what it sends."""


@register()
def retention_outlives_resends(app_configs: Any, **kwargs: Any) -> list[Error]:
    """0, or long enough (D25)."""
    if 0 < settings.OTLP_RETENTION_DAYS < SHORTEST_DAYS:
        return [
            Error(
                f"OTLP_RETENTION_DAYS={settings.OTLP_RETENTION_DAYS} is shorter than a late resend may take.",
                hint=f"Set {SHORTEST_DAYS} or more days, or 0 to keep all.",
                id="otlp.E001",
            )
        ]
    return []
