"""Resolve reservations that the process which made them did not end: it was killed, or could not reach billing (C9).

A marker decides, never the age: committed is settled; where there is none, the refusal is stored in the business
database first and the reservation released then. Age says only when to ask. A transaction that is still at work holds
its marker's key; the sweep waits a moment for it, leaves it alone, and comes back. Two sweeps at once are harmless.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import DatabaseError

from billing.commercial import metrics
from billing.commercial.ending import end_generation
from billing.commercial.errors import CommercialError
from billing.commercial.markers.mark import Decision, MarkerKey, decide
from billing.commercial.markers.models import MarkerKind
from billing.commercial.models import EndedBy, ReservationState
from billing.commercial.reserve import ALIAS
from config.owners import owner_named
from outbox.raw import raw_cursor
from outbox.steps import reach

PAGE = 200
"""Left reservations read at once."""
PATIENCE_SECONDS = 0.5
"""How long a sweep waits for a transaction that may still be at work."""

log = structlog.get_logger("billing.commercial")

LEFT = """
SELECT reserved_at, reservation_id, generation FROM commercial_runtime_reservations
 WHERE state = 'reserved' AND business = %s AND reserved_at <= now() - make_interval(secs => %s)
   AND (reserved_at, reservation_id) > (%s, %s)
 ORDER BY reserved_at, reservation_id LIMIT %s
"""
BEGINNING = (datetime.fromisoformat("0001-01-02T00:00:00Z"), UUID(int=0))


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did. `live` are still at work, `failed` could not be resolved and are asked for again."""

    settled: int = 0
    released: int = 0
    live: int = 0
    failed: int = 0


def sweep(*, business: str, held_for: timedelta) -> Swept:
    """Resolve every reservation of this owner's business code that is held for longer than this.

    Raises a database error if one of the two databases cannot be reached.
    """
    using = owner_named(business).alias
    done: Counter[str] = Counter()
    for page in _pages(business=business, held_for=held_for):
        for _, reservation_id, generation in page:
            outcome = _resolve(MarkerKey(reservation_id, generation, MarkerKind.RESERVATION), using=using)
            metrics.swept(business=business, outcome=outcome)
            done[outcome] += 1
    metrics.sweep_finished(business=business)
    return Swept(**done)


def _pages(*, business: str, held_for: timedelta) -> Iterator[list[tuple[datetime, UUID, int]]]:
    """Every page once, also behind reservations that cannot be resolved."""
    after = BEGINNING
    while True:
        with raw_cursor(ALIAS) as cursor:
            cursor.execute(LEFT, (business, held_for.total_seconds(), *after, PAGE))
            rows = cursor.fetchall()
        if not rows:
            return
        after = rows[-1][0], rows[-1][1]
        yield rows


def _resolve(key: MarkerKey, *, using: str) -> str:
    try:
        decision = decide(key, using=using, patience=PATIENCE_SECONDS)
        reach("commercial.sweep_decided")
        if decision is Decision.LIVE:
            return "live"
        wanted = ReservationState.SETTLED if decision is Decision.COMMITTED else ReservationState.RELEASED
        end_generation(key.subject_id, key.generation, wanted, by=EndedBy.SWEEP)
    except (DatabaseError, CommercialError) as error:
        if isinstance(error, DatabaseError) and getattr(error.__cause__, "sqlstate", None) is None:
            raise
        log.error(
            "quota_sweep_failed",
            reservation_id=str(key.subject_id),
            generation=key.generation,
            error_class=type(error).__name__,
        )
        return "failed"
    return wanted.value
