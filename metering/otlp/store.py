"""Store the events of one request in one transaction, each exactly once (T6), with all that must be known of them.

The rows are copied into a table of this session and inserted from there, so nothing is asked per row. What the key
already holds is a duplicate, and a conflict where it says something else: what was stored first stands. Windows are
marked and tallies counted in the same transaction; those rows are the only ones that requests of one cluster share, so
they are locked last, in one order, and until commit only.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import connections, transaction
from psycopg import Connection

from config.owners import owner_named
from metering.otlp import days
from metering.otlp.decode import Piece, Summary
from metering.otlp.fields import Kind
from metering.otlp.models.tally import UNKNOWN_KIND
from metering.otlp.read_record import Row
from metering.otlp.statements import COUNT_DROPS, MARK_WINDOWS, STATEMENTS, TALLY
from metering.otlp.times import DAY
from outbox.raw import Cursor, raw_cursor
from outbox.steps import reach

ALIAS = owner_named("telemetry").alias

_prepared: "WeakKeyDictionary[Connection[Any], set[Kind]]" = WeakKeyDictionary()
"""For which kinds a session has its staging table."""


@dataclass(frozen=True, slots=True)
class Clash:
    """An event that contradicts the stored one of its key, `arrivals` times in this request."""

    kind: Kind
    event_id: str
    reason: str
    fields: str
    arrivals: int


@dataclass(slots=True)
class Outcome:
    """What became of the accepted events of a request: each kind's accepted = stored + duplicates + conflicts."""

    stored: Counter[Kind] = field(default_factory=Counter)
    duplicates: Counter[Kind] = field(default_factory=Counter)
    conflicts: Counter[Kind] = field(default_factory=Counter)
    clashes: list[Clash] = field(default_factory=list)


def store(pieces: Iterable[Piece], *, cluster_id: str, mode: str, summary: Summary) -> Outcome:
    """Take all pieces and store them; `summary` is complete then, and its drops are counted in the same transaction.

    Raises what taking a piece raises, `days.Gone` when a day is no longer kept, and Django's database errors; then
    nothing of the request is stored.
    """
    outcome = Outcome()
    with transaction.atomic(using=ALIAS), raw_cursor(ALIAS) as cursor:
        session = cursor.connection
        staged = _stage(cursor, pieces)
        windows: list[tuple[Kind, datetime]] = []
        for kind, spans in staged.items():
            days.ensure(cursor, kind, spans)
            origin = {"cluster": cluster_id, "mode": mode}
            windows += _insert(cursor, kind, origin, spans, outcome)
        reach("otlp.inserted")
        if windows:
            _mark(cursor, cluster_id, windows)
        if staged:
            _tally(cursor, cluster_id, list(staged), outcome)
        if summary.dropped:
            _count_drops(cursor, cluster_id, summary)
    days.remember(staged)
    if not _is_pooled():
        _prepared.setdefault(session, set()).update(staged)
    reach("otlp.stored")
    return outcome


def _is_pooled() -> bool:
    """Whether the next transaction may find itself in another session, whose staging nobody knows."""
    return bool(connections[ALIAS].settings_dict["DISABLE_SERVER_SIDE_CURSORS"])


def _stage(cursor: Cursor, pieces: Iterable[Piece]) -> dict[Kind, Counter[int]]:
    """Copy every row; how many of each kind there are on each day, counted from 2000."""
    staged: dict[Kind, Counter[int]] = {}
    prepared = _prepared.get(cursor.connection, set())
    for piece in pieces:
        for kind, rows in piece.rows.items():
            if rows:
                if kind not in staged:
                    if kind not in prepared:
                        cursor.execute(STATEMENTS[kind].make_staging)
                    staged[kind] = Counter()
                _copy(cursor, kind, rows)
                staged[kind].update(row[-1] // DAY for row in rows)
    return {kind: staged[kind] for kind in Kind if kind in staged}


def _copy(cursor: Cursor, kind: Kind, rows: Sequence[Row]) -> None:
    statements = STATEMENTS[kind]
    with cursor.copy(statements.copy) as copy:
        copy.set_types(statements.copy_types)
        write = copy.write_row
        for row in rows:
            write(row)


def _insert(
    cursor: Cursor, kind: Kind, origin: dict[str, str], spans: Counter[int], outcome: Outcome
) -> list[tuple[Kind, datetime]]:
    """Insert what is staged; the windows in which something is new."""
    window = timedelta(seconds=settings.CONSUMPTION_WINDOW_SECONDS)
    with days.missing_is_gone():
        found = cursor.execute(STATEMENTS[kind].insert, {**origin, "window": window}).fetchall()
    days.check_retained(kind, spans, found[0][2] if found else None)
    stored = sum(count for _, count, _ in found)
    if stored < spans.total():
        rows = cursor.execute(STATEMENTS[kind].conflicts, origin).fetchall()
        outcome.clashes += [Clash(kind, *row) for row in rows]
        outcome.conflicts[kind] = sum(row[3] for row in rows)
    outcome.stored[kind] = stored
    outcome.duplicates[kind] = spans.total() - stored - outcome.conflicts[kind]
    return [(kind, start) for start, _, _ in found]


def _mark(cursor: Cursor, cluster_id: str, windows: list[tuple[Kind, datetime]]) -> None:
    values = {
        "cluster": cluster_id,
        "kinds": [kind.value for kind, _ in windows],
        "starts": [start for _, start in windows],
    }
    cursor.execute(MARK_WINDOWS, values)


def _tally(cursor: Cursor, cluster_id: str, kinds: list[Kind], outcome: Outcome) -> None:
    values = {
        "cluster": cluster_id,
        "kinds": [kind.value for kind in kinds],
        "stored": [outcome.stored[kind] for kind in kinds],
        "duplicates": [outcome.duplicates[kind] for kind in kinds],
        "conflicts": [outcome.conflicts[kind] for kind in kinds],
    }
    cursor.execute(TALLY, values)


def _count_drops(cursor: Cursor, cluster_id: str, summary: Summary) -> None:
    last = {(drop.kind, drop.reason): drop.event_id for drop in summary.samples}
    counted = list(summary.dropped.items())
    values = {
        "cluster": cluster_id,
        "kinds": [kind.value if kind else UNKNOWN_KIND for (kind, _), _ in counted],
        "reasons": [reason.value for (_, reason), _ in counted],
        "dropped": [count for _, count in counted],
        "event_ids": [last.get(key) for key, _ in counted],
    }
    cursor.execute(COUNT_DROPS, values)
