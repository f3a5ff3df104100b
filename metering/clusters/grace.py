"""How long a superseded token is still accepted after a rotation (T3)."""

from datetime import timedelta

from django.conf import settings

from metering.clusters.models import GRACE_FLOOR


def rotation_grace() -> timedelta:
    """The time collectors need to take up a new token, with its safety factor, and never less than 72 hours.

    Below the first, collectors would still hold the old token when it ends; below the second, nobody on call would have
    the time to find out why one did not follow.
    """
    needed = timedelta(seconds=settings.OTLP_TOKEN_PROPAGATION) * settings.OTLP_TOKEN_SAFETY_FACTOR
    return max(GRACE_FLOOR, needed)
