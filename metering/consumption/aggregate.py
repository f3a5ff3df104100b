"""Sum up the windows whose events changed: lines, orphans among them, and what each organisation owes (T13).

A window is summed up anew from its stored events, under its row, in one transaction that also clears its mark, if the
mark is still the one that was read before the events were. So an event that arrives meanwhile leaves its window dirty,
a late event opens exactly its window again, and a process that dies leaves everything as it was. Whoever finds a window
held by another goes on to the next.

Weakness: the organisations of keys are read from another database, so a key that is learnt at the same moment may be
missed; its lines are orphans then, until the next sweep releases them.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections, transaction
from django.db.backends.utils import CursorWrapper

from metering.clusters.managed_keys import organizations_of
from metering.consumption import statements
from metering.consumption.window import ALIAS, Window, hold
from metering.consumption.window_length import ensure_window_length
from outbox.steps import reach

PAGE = 200
"""Windows looked up at once."""
BEGINNING = (datetime(1, 1, 2, tzinfo=UTC), "", "", datetime(1, 1, 2, tzinfo=UTC))

log = structlog.get_logger("metering.consumption")


class Outcome(Enum):
    """What became of one window."""

    AGGREGATED = "aggregated"
    """Its lines say what its events say."""
    CLEAN = "clean"
    """Another had just summed it up."""
    HELD = "held"
    """Another is at work on it."""
    EXPIRED = "expired"
    """Its events are no longer kept, so its lines stay as they are."""
    FAILED = "failed"
    """An error; it stays dirty, and others go on."""


class KeysUnreadable(RuntimeError):
    """Managed keys cannot be read, so nothing of a gateway can be attributed. Transient: bring their database back."""


def aggregate_due(*, at: datetime, go_on: Callable[[], bool]) -> dict[Outcome, int]:
    """Sum up every window that is dirty and was over `CONSUMPTION_CLOSE_AFTER` before `at`, oldest mark first.

    Stops between two windows when `go_on` says so, but not before the first. One window that fails keeps no other from
    its turn. Raises `WindowLengthChanged`, `KeysUnreadable`, or a database error if telemetry is lost.
    """
    done = dict.fromkeys(Outcome, 0)
    for window in _due(begun_by=at - timedelta(seconds=settings.CONSUMPTION_CLOSE_AFTER) - ensure_window_length()):
        try:
            outcome = aggregate(window)
        except Exception as error:
            if isinstance(error, KeysUnreadable) or not connections[ALIAS].is_usable():
                raise
            log.exception("consumption_window_failed", **_said(window))
            outcome = Outcome.FAILED
        done[outcome] += 1
        if not go_on():
            break
    return done


def _due(*, begun_by: datetime) -> Iterator[Window]:
    """Every due window once, page by page, each opened before it is given out."""
    after = BEGINNING
    while True:
        names: dict[str, Any] = dict(zip(("marked_at", "kind", "cluster", "start"), after, strict=True))
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(statements.DUE, {**names, "begun_by": begun_by, "page": PAGE})
            rows = cursor.fetchall()
            if not rows:
                return
            _, kinds, clusters, starts = map(list, zip(*rows, strict=True))
            cursor.execute(statements.OPEN, {"kinds": kinds, "clusters": clusters, "starts": starts})
        yield from (Window(*row[1:]) for row in rows)
        after = rows[-1]


def aggregate(window: Window) -> Outcome:
    """Sum up one window that is opened, in one transaction. Raises database errors; then nothing has changed."""
    with transaction.atomic(using=ALIAS, durable=True), connections[ALIAS].cursor() as cursor:
        end = hold(window, cursor)
        if end is None:
            return Outcome.HELD
        cursor.execute(statements.MARK, window.parameters())
        mark = cursor.fetchone()
        if mark is None:
            return Outcome.CLEAN
        generation, expired = mark
        own: dict[str, Any] = {**window.parameters(), "end": end, "generation": generation}
        reach("consumption.window_held")
        if expired:
            log.error("consumption_window_expired", **_said(window))
        else:
            _sum_up(cursor, own)
        cursor.execute(statements.CLEAR, own)
        reach("consumption.before_commit")
    reach("consumption.committed")
    return Outcome.EXPIRED if expired else Outcome.AGGREGATED


def _said(window: Window) -> dict[str, str]:
    return {**window._asdict(), "window_start": window.window_start.isoformat()}


def _sum_up(cursor: CursorWrapper, window: dict[str, Any]) -> None:
    milliseconds = {"milliseconds": f"{settings.CONSUMPTION_STATEMENT_TIMEOUT * 1000:.0f}"}
    cursor.execute(statements.SETTINGS, milliseconds)
    cursor.execute(statements.SUM_UP[str(window["kind"])], window)
    cursor.execute(statements.KEYS)
    try:
        known = organizations_of([key for (key,) in cursor.fetchall()])
    except (DatabaseError, InterfaceError) as error:
        raise KeysUnreadable(KeysUnreadable.__doc__) from error
    reach("consumption.summed_up")
    cursor.execute(statements.MERGE_LINES, {**window, "keys": list(known), "organizations": list(known.values())})
    for statement in (statements.EMPTY_LINES, statements.CHARGE, statements.FINISH):
        cursor.execute(statement, window)
