"""System checks of consumption: limits that must hold before anything starts."""

from typing import Any

from django.conf import settings
from django.core.checks import Error, register

DAY_SECONDS = 86_400


@register()
def windows_fill_a_day(app_configs: Any, **kwargs: Any) -> list[Error]:
    """A day of UTC is a whole number of windows: events are kept and removed by the day, so none may reach over it."""
    if DAY_SECONDS % settings.CONSUMPTION_WINDOW_SECONDS:
        return [
            Error(
                f"CONSUMPTION_WINDOW_SECONDS={settings.CONSUMPTION_WINDOW_SECONDS} does not divide a day.",
                hint="Set it to 3600, 1800, 900, 600, 300 or another divisor of 86400.",
                id="consumption.E001",
            )
        ]
    return []
