"""Who sends, and may it send now? Asked before a byte of the body is read (T9, T14), in a thread of its own."""

from datetime import datetime

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from metering.clusters.authenticate import Authenticated, AuthenticationFailed, authenticate
from metering.otlp import metrics
from metering.otlp.limiter import limiter

log = structlog.get_logger("otlp.admit")


class RateLimited(Exception):
    """The cluster's bucket is empty. Transient: the sender comes again after `Retry-After`."""


def admit(authorization: bytes | None, *, now: datetime) -> Authenticated:
    """The sender behind an Authorization header, one token of its bucket spent.

    Raises `AuthenticationFailed`, `RateLimited`, or Django's database error if nobody can say whose token it is.
    """
    try:
        who = _authenticate(authorization, now)
    except AuthenticationFailed as failed:
        metrics.auth_failed(failed.reason.value)
        log.warning("otlp_auth_failed", reason=failed.reason.value)
        raise
    per_second = who.rate_per_second or settings.OTLP_RATE_PER_SECOND
    burst = who.rate_burst or settings.OTLP_RATE_BURST
    if not limiter().admits(who.cluster_id, per_second=per_second, burst=burst):
        metrics.rate_limited()
        log.warning("otlp_rate_limited", cluster_id=str(who.cluster_id))
        raise RateLimited
    return who


def _authenticate(authorization: bytes | None, now: datetime) -> Authenticated:
    try:
        return authenticate(authorization, now)
    except (DatabaseError, InterfaceError):
        # The connection may have been lost while it was idle; it has been given up, and the next one is new.
        return authenticate(authorization, now)
