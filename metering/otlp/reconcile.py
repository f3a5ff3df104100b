"""Compare the store with the archive: one cluster, one half-open span of event time, distinct keys per kind (T12).

The fanout sink commits first and archives then, and whatever it could not archive comes again. So the archive must hold
every stored key of the span, and may hold more only where the store refused an event because its key stands for another
cluster, which is a recorded conflict. Repeated lines of one key count once.

The store is read first; a key that only the archive has is looked up in the store again, because it may have been
stored since. Keys are gathered in a temporary file, so memory stays flat whatever the span holds.

Weakness: what is stored and not yet archived at this moment looks like a loss. Compare a span that no client is
resending.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import connections, transaction

from config.owners import owner_named
from metering.otlp.archive import Damaged, events
from metering.otlp.describe import NAME, stamp
from metering.otlp.fields import Kind
from metering.otlp.statements import RETAINED, TABLES

ALIAS = owner_named("telemetry").read_alias
BATCH = 2_000
STATEMENT_SECONDS = 3_600
"""Reading a whole span may take longer than the read role's pages."""

Key = tuple[str, str]
"""Event id, and when it occurred as the archive writes it."""

GATHER = "CREATE TABLE {side} (event_id TEXT, occurred_at TEXT, PRIMARY KEY (event_id, occurred_at)) WITHOUT ROWID"
ONLY = "SELECT event_id, occurred_at FROM {one} EXCEPT SELECT event_id, occurred_at FROM {other} ORDER BY 2, 1"
STORED = """
SELECT event_id, occurred_at FROM {table}
 WHERE cluster_id = %(cluster)s AND occurred_at >= %(begin)s AND occurred_at < %(end)s
"""
EXPLAINED = """
SELECT k.event_id, k.occurred_at,
       CASE WHEN c.event_id IS NOT NULL THEN 'conflict' WHEN e.event_id IS NOT NULL THEN 'stored' END
  FROM unnest(%(ids)s::text[], %(times)s::timestamptz[]) AS k (event_id, occurred_at)
  LEFT JOIN {table} e
    ON e.event_id = k.event_id AND e.occurred_at = k.occurred_at AND e.cluster_id = %(cluster)s
  LEFT JOIN LATERAL (SELECT event_id FROM telemetry_conflicts t
                      WHERE t.event_id = k.event_id AND t.occurred_at = k.occurred_at AND t.kind = %(kind)s
                        AND t.reason = 'cluster' AND t.cluster_id = %(cluster)s LIMIT 1) c ON true
"""


class NoLongerKept(ValueError):
    """Events of that time are no longer kept, so there is nothing to compare. Permanent: choose a later beginning."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One kind: distinct keys on both sides, and those that only one side has."""

    kind: Kind
    stored: int
    archived: int
    lacking: tuple[Key, ...]
    """Stored and not archived; the first of them."""
    lacking_count: int
    exceeding: tuple[Key, ...]
    """Archived, neither stored nor a recorded conflict; the first of them."""
    exceeding_count: int
    conflicts: int
    """Archived, and refused by the store because the key is another cluster's."""

    @property
    def agrees(self) -> bool:
        """Whether each side holds what the rule demands and no more."""
        return not self.lacking_count and not self.exceeding_count


def reconcile(
    *, cluster_id: str, begin: datetime, end: datetime, archives: Sequence[Path], shown: int
) -> list[Compared]:
    """Compare both kinds; at most `shown` keys of each difference are named.

    Raises `NoLongerKept`, `Damaged` for an unreadable archive, or a database error.
    """
    _ensure_kept(begin)
    with TemporaryDirectory(prefix="reconcile-") as directory:
        gathered = {kind: sqlite3.connect(Path(directory) / kind.value) for kind in Kind}
        try:
            for side in ("stored", "archived"):
                for book in gathered.values():
                    book.execute(GATHER.format(side=side))
            for kind, book in gathered.items():
                _gather(book, "stored", _stored_keys(kind, cluster_id, begin, end))
            _gather_archived(gathered, archives, cluster_id, (stamp(_utc(begin)), stamp(_utc(end))))
            return [_compare(kind, book, cluster_id, shown) for kind, book in gathered.items()]
        finally:
            for book in gathered.values():
                book.close()


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


def _ensure_kept(begin: datetime) -> None:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(RETAINED)
        kept = [retained for _, retained in cursor.fetchall() if begin < retained]
    if kept:
        raise NoLongerKept(f"{NoLongerKept.__doc__} Kept since {stamp(_utc(max(kept)))}.")


def _stored_keys(kind: Kind, cluster_id: str, begin: datetime, end: datetime) -> Iterator[Key]:
    values = {"cluster": cluster_id, "begin": begin, "end": end}
    with transaction.atomic(using=ALIAS):
        connection: Any = connections[ALIAS].connection
        connection.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'")
        with closing(connection.cursor(name="reconcile")) as cursor:
            cursor.itersize = BATCH
            cursor.execute(STORED.format(table=TABLES[kind]), values)
            for event_id, occurred_at in cursor:
                yield event_id, stamp(_utc(occurred_at))


def _gather_archived(
    gathered: dict[Kind, sqlite3.Connection], archives: Sequence[Path], cluster_id: str, span: tuple[str, str]
) -> None:
    begin, end = span
    waiting: dict[str, list[Key]] = {kind.value: [] for kind in Kind}
    for archive in archives:
        for event in events(archive):
            name, occurred_at = event.get("event_type", ""), event.get("occurred_at", "")
            if event.get("log") != NAME or name not in waiting:
                raise Damaged(f"{archive} holds lines that are no archived events. {Damaged.__doc__}")
            if event["cluster_id"] == cluster_id and begin <= occurred_at < end:
                waiting[name].append((event["event_id"], occurred_at))
                if len(waiting[name]) == BATCH:
                    _gather(gathered[Kind(name)], "archived", waiting[name])
                    waiting[name].clear()
    for name, keys in waiting.items():
        _gather(gathered[Kind(name)], "archived", keys)


def _gather(book: sqlite3.Connection, side: str, keys: Iterable[Key]) -> None:
    book.executemany(f"INSERT OR IGNORE INTO {side} VALUES (?, ?)", keys)
    book.commit()


def _compare(kind: Kind, book: sqlite3.Connection, cluster_id: str, shown: int) -> Compared:
    lacking, exceeding = list[Key](), list[Key]()
    lacking_count = exceeding_count = conflicts = 0
    for keys in _batches(book.execute(ONLY.format(one="stored", other="archived"))):
        lacking_count += len(keys)
        lacking += keys[: max(0, shown - len(lacking))]
    for keys in _batches(book.execute(ONLY.format(one="archived", other="stored"))):
        found = _explained(kind, keys, cluster_id)
        conflicts += sum(why == "conflict" for why in found.values())
        unexplained = [key for key in keys if found[key] is None]
        exceeding_count += len(unexplained)
        exceeding += unexplained[: max(0, shown - len(exceeding))]
    stored, archived = (book.execute(f"SELECT count(*) FROM {side}").fetchone()[0] for side in ("stored", "archived"))
    return Compared(
        kind=kind,
        stored=stored,
        archived=archived,
        lacking=tuple(lacking),
        lacking_count=lacking_count,
        exceeding=tuple(exceeding),
        exceeding_count=exceeding_count,
        conflicts=conflicts,
    )


def _batches(keys: Iterable[Key]) -> Iterator[list[Key]]:
    remaining = iter(keys)
    while batch := list(islice(remaining, BATCH)):
        yield batch


def _explained(kind: Kind, keys: Sequence[Key], cluster_id: str) -> dict[Key, str | None]:
    ids, times = zip(*keys, strict=True)
    values: dict[str, Any] = {"ids": list(ids), "times": list(times), "cluster": cluster_id, "kind": kind.value}
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(EXPLAINED.format(table=TABLES[kind]), values)
        return {(event_id, stamp(_utc(at))): why for event_id, at, why in cursor.fetchall()}
