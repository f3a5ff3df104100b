"""Find event ids that occurred at two times, behind the receiver's back, and keep all but the first unconsumed (T6).

The key (event_id, occurred_at) can not see them: a producer that stamps a retry anew makes two rows of one event. What
was received first stands and is consumed; every later time of it becomes a conflict, and its window is aggregated
again without it. The scan follows the time of receipt, so it costs the same however old the events are.

How it can be wrong: between the receipt and the scan, a window can be aggregated with both rows; the mark corrects it.
A clock of the database server that steps back hides what is received meanwhile, until that time has passed again.
"""

import time
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import transaction

from config.owners import owner_named
from metering.otlp import metrics
from metering.otlp.fields import Kind
from metering.otlp.models import ConflictReason
from metering.otlp.statements import HORIZON, MOVE_SCAN, SCAN, STATEMENTS, TAKE_SCAN
from outbox.raw import raw_cursor

ALIAS = owner_named("telemetry").alias
STEP = timedelta(seconds=10)
"""Of receipt that one transaction looks at."""
LOGGED = 100

log = structlog.get_logger("otlp.identify")


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction of the scan. `is_last` says that nothing newer is complete."""

    twins: int
    is_last: bool


def scan(kind: Kind, *, seconds: float) -> int:
    """Look at what was received since the last scan, for about so long; how many conflicts were found.

    Returns at once while another scan of the kind is at work. Raises Django's database errors; what was committed by
    then stays, and the next scan goes on from there.
    """
    deadline = time.monotonic() + seconds
    found = 0
    while True:
        step = _step(kind)
        found += step.twins
        if step.is_last or time.monotonic() >= deadline:
            return found


def _step(kind: Kind) -> Step:
    statements = STATEMENTS[kind]
    with transaction.atomic(using=ALIAS), raw_cursor(ALIAS) as cursor:
        cursor.execute(SCAN, [kind.value])
        place = cursor.execute(TAKE_SCAN, [kind.value]).fetchone()
        if place is None:
            return Step(0, is_last=True)
        horizon = cursor.execute(HORIZON).fetchone()[0]  # type: ignore[index]  # an aggregate is one row
        span = {"low": place[0], "high": horizon}
        first = cursor.execute(statements.first_received, span).fetchone()[0]  # type: ignore[index]  # likewise
        twins = []
        if first is not None:
            span = {"low": first, "high": min(first + STEP, horizon)}
            cursor.execute(statements.identify, span)
            window = timedelta(seconds=settings.CONSUMPTION_WINDOW_SECONDS)
            twins = cursor.execute(statements.find_twins, {**span, "window": window}).fetchall()
        cursor.execute(MOVE_SCAN, {"kind": kind.value, "high": max(place[0], span["high"])})
    _tell(kind, twins)
    return Step(len(twins), is_last=first is None or span["high"] == horizon)


def _tell(kind: Kind, twins: list[tuple[str, str, str]]) -> None:
    reason = ConflictReason.TWO_TIMES.value
    metrics.conflicts({reason: len(twins)})
    for event_id, cluster_id, fields in twins[:LOGGED]:
        log.error(
            "otlp_conflict", cluster_id=cluster_id, event_type=kind, event_id=event_id, reason=reason, fields=fields
        )
