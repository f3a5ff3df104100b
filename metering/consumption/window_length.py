"""The length of windows is one for the whole store: whoever marks or sums up windows makes sure of it first."""

from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from metering.consumption.window import ALIAS

FIX = "INSERT INTO consumption_window_length (seconds) VALUES (%s) ON CONFLICT (single) DO NOTHING"
FIXED = "SELECT seconds FROM consumption_window_length"


class WindowLengthChanged(ImproperlyConfigured):
    """CONSUMPTION_WINDOW_SECONDS is another length than that of the stored windows, which it would overlap. Permanent:
    set it back."""


def ensure_window_length() -> timedelta:
    """The length of all windows; fixed now if there is none yet. Raises `WindowLengthChanged`."""
    wanted: int = settings.CONSUMPTION_WINDOW_SECONDS
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(FIXED)
        row = cursor.fetchone()
        if row is None:
            cursor.execute(FIX, [wanted])
            cursor.execute(FIXED)
            row = cursor.fetchone()
    if row[0] != wanted:
        raise WindowLengthChanged(f"{wanted} is set, {row[0]} is stored. {WindowLengthChanged.__doc__}")
    return timedelta(seconds=wanted)
