"""Remove whole days of events that are older than what is kept, and then what was known of their ids.

The database decides: it refuses days that consumption has not aggregated, and any of the last 35, counts what goes, and
never lets it be stored again.
"""

from datetime import date, timedelta

import structlog
from django.db import OperationalError, transaction

from config.owners import owner_named
from metering.otlp.fields import Kind
from metering.otlp.statements import EXPIRE_DAYS, PURGE_IDENTITIES
from outbox.raw import raw_cursor

ALIAS = owner_named("telemetry").alias
PURGED_AT_ONCE = 10_000

log = structlog.get_logger("otlp.expire")


def expire(kind: Kind, *, today: date, keep_days: int) -> int:
    """Remove days of a kind until only `keep_days` before today are left, one by one; how many went.

    A day whose lock is not free at once is left for the next time.
    """
    gone = 0
    before = today - timedelta(days=keep_days)
    try:
        while _expire_day(kind, before):
            gone += 1
    except OperationalError as error:
        log.warning("otlp_day_is_busy", event_type=kind, error_class=type(error).__name__)
    while _purge(kind) == PURGED_AT_ONCE:
        pass
    if gone:
        log.info("otlp_days_expired", event_type=kind, count=gone)
    return gone


def _expire_day(kind: Kind, before: date) -> bool:
    with transaction.atomic(using=ALIAS), raw_cursor(ALIAS) as cursor:
        row = cursor.execute(EXPIRE_DAYS, [kind.value, before, 1]).fetchone()
    return row == (1,)


def _purge(kind: Kind) -> int:
    with raw_cursor(ALIAS) as cursor:
        return cursor.execute(PURGE_IDENTITIES, {"kind": kind.value, "most": PURGED_AT_ONCE}).rowcount
