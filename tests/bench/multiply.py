"""Millions of rows in a minute: one real admission, copied in SQL under new names.

Every copied event is whole and valid: its envelope is the original with run and event ids replaced by others of equal
length, and its digest is computed again, so it hashes, parses and projects like any other. Only the way in is short:
row triggers are off while copying, which only the administrator can do. Times advance by a second with every
thousand rows, as a steady load would leave them. Receipts and attempts of copies are for looking at, not for proving.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from tests.bench import children, ground

ROWS_OF_ONE_TIME = 1000
OUTBOX = ("outbox_events", "outbox_deliveries")
ATTEMPTS = ("outbox_delivery_attempt_starts", "outbox_delivery_attempt_finishes")
PROJECTION = (
    "operations_projection_applied_receipts",
    "projection_aggregates",
    "operation_summaries",
    "timeline_entries",
    "exact_identifiers",
)
EVERYTHING = (*OUTBOX, *ATTEMPTS, *PROJECTION)

NAMES = """
CREATE TEMP TABLE names AS
SELECT i, md5(%(salt)s || i::text) AS run, uuidv7()::text AS run_event, uuidv7()::text AS wallet_event,
       now() - interval '1 hour' + (i * 2 / %(rows)s) * interval '1 second' AS at
  FROM generate_series(1, %(pairs)s) i
"""
ORIGINAL = """
SELECT (SELECT split_part(aggregate_id, ':', 2) FROM outbox_events WHERE event_type LIKE 'run.%'),
       (SELECT event_id::text FROM outbox_events WHERE event_type LIKE 'run.%'),
       (SELECT event_id::text FROM outbox_events WHERE event_type LIKE 'wallet.%')
"""
COLUMNS = """
SELECT column_name, data_type FROM information_schema.columns
 WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER' AND is_identity = 'NO'
 ORDER BY ordinal_position
"""
TIMES = (
    "created_at",
    "available_at",
    "last_attempt_at",
    "started_at",
    "finished_at",
    "delivered_at",
    "applied_at",
)
ATTEMPT_IDS = ("attempt_id", "current_attempt_id")
Connection = psycopg.Connection[tuple[Any, ...]]


class Multiplier:
    """Copies the one admission of a database whose tables hold nothing else. An administrator's connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        row = connection.execute(ORIGINAL).fetchone()
        assert row is not None
        self.original = dict(zip(("run", "run_event", "wallet_event"), row, strict=True))
        for table in EVERYTHING:
            connection.execute(f"CREATE TEMP TABLE original_{table} AS SELECT * FROM {table}".encode())

    def add(self, deliveries: int, *, tables: Sequence[str] = OUTBOX, changes: Mapping[str, str] | None = None) -> None:
        """Add `deliveries` (an even number) to `tables`; `changes` are SQL values for columns of the deliveries."""
        salt = f"{deliveries} {id(self)} {tables} {changes}"
        with self.connection.transaction():
            self.connection.execute("SET LOCAL session_replication_role = replica")
            values = {"salt": salt, "rows": ROWS_OF_ONE_TIME, "pairs": deliveries // 2}
            psycopg.ClientCursor(self.connection).execute(NAMES, values)
            for table in tables:
                changed = dict(changes or {}) if table == "outbox_deliveries" else {}
                self._copy(table, changed)
            self.connection.execute("DROP TABLE names")

    def _copy(self, table: str, changed: Mapping[str, str]) -> None:
        columns = self.connection.execute(COLUMNS, [table]).fetchall()
        values = [changed.get(name) or self._value(table, name, kind) for name, kind in columns]
        self.connection.execute(
            (
                f"INSERT INTO {table} ({', '.join(name for name, _ in columns)}) "
                f"SELECT {', '.join(values)} FROM names n CROSS JOIN original_{table} o ORDER BY n.i"
            ).encode()
        )

    def _value(self, table: str, name: str, kind: str) -> str:
        if name in TIMES:
            return f"CASE WHEN o.{name} IS NOT NULL THEN n.at END"
        if name in ATTEMPT_IDS:
            return f"md5(o.{name}::text || n.run)::uuid"
        if (table, name) == ("outbox_events", "event_envelope_sha256"):
            return f"encode(sha256(convert_to({self._renamed('o.event_envelope')}, 'UTF8')), 'hex')"
        if kind == "text":
            return self._renamed(f"o.{name}")
        if kind == "uuid":
            return f"{self._renamed(f'o.{name}::text')}::uuid"
        return f"o.{name}"

    def _renamed(self, value: str) -> str:
        for name, original in self.original.items():
            value = f"replace({value}, '{original}', n.{name})"
        return value


def load(deliveries: int, *, prefix: str, others: Sequence[tuple[int, Mapping[str, str]]] = ()) -> None:
    """Make `<prefix>core` a database with a backlog of `deliveries` pending deliveries.

    `others` are further deliveries, without events, that differ from a pending one as told.
    """
    ground.copy(of=ground.EMPTY, to=prefix)
    children.run("preload", "--events", "2", prefix=prefix)
    with ground.administrator(f"{prefix}core") as connection:
        multiplier = Multiplier(connection)
        multiplier.add(deliveries - 2)
        for count, changes in others:
            multiplier.add(count, tables=("outbox_deliveries",), changes=changes)
    ground.settled(f"{prefix}core")
