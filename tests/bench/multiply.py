"""Large backlogs in seconds: one real admission, appended by the engine, copied in SQL under new names.

Every copy is a whole, valid event: its envelope is the original with run, ids and digest replaced by others of the same
length, so it hashes, parses and projects like any other. Only the way in is short: guards are off while copying, which
only the administrator can do. `available_at` advances with every thousand rows, as separate transactions would do it.
"""

from typing import Any

import psycopg

from tests.bench import children, ground

ROWS_OF_ONE_TIME = 1000

PREPARE = """
CREATE TEMP TABLE original AS
SELECT e.*, d.destination, first.run, first.event_id::text AS run_event
  FROM outbox_events e
  JOIN outbox_deliveries d USING (event_id)
  CROSS JOIN (SELECT event_id, split_part(aggregate_id, ':', 2) AS run FROM outbox_events
               WHERE event_type LIKE 'run.created%%' ORDER BY event_id LIMIT 1) first
 WHERE e.aggregate_id LIKE '%%:' || first.run
"""
COPIES = """
CREATE TEMP TABLE copies AS
WITH numbers AS (
    SELECT i, md5(%(salt)s || i::text) AS run, uuidv7() AS run_event, uuidv7() AS wallet_event,
           %(start)s::timestamptz + (i * 2 / %(rows)s) * interval '50 milliseconds' AS at
      FROM generate_series(1, %(pairs)s) i
)
SELECT n.i, n.run, n.at, o.event_id AS original,
       CASE WHEN o.event_id::text = o.run_event THEN n.run_event ELSE n.wallet_event END AS event_id,
       replace(o.aggregate_id, o.run, n.run) AS aggregate_id,
       replace(o.correlation_id, o.run, n.run) AS correlation_id, replace(o.operation_id, o.run, n.run) AS operation_id,
       replace(o.causation_id, o.run_event, n.run_event::text) AS causation_id,
       replace(replace(replace(o.event_envelope, o.run, n.run), o.run_event, n.run_event::text),
               o.event_id::text, n.wallet_event::text) AS envelope
  FROM numbers n CROSS JOIN original o
"""
EVENTS = """
INSERT INTO outbox_events ({columns})
SELECT {values} FROM copies c JOIN outbox_events e ON e.event_id = c.original ORDER BY c.i, c.event_id
"""
DELIVERIES = """
INSERT INTO outbox_deliveries ({columns})
SELECT {values} FROM copies c JOIN outbox_deliveries d ON d.event_id = c.original ORDER BY c.i, c.event_id
"""
CHANGED = {
    "event_id": "c.event_id",
    "aggregate_id": "c.aggregate_id",
    "correlation_id": "c.correlation_id",
    "operation_id": "c.operation_id",
    "causation_id": "c.causation_id",
    "event_envelope": "c.envelope",
    "event_envelope_sha256": "encode(sha256(convert_to(c.envelope, 'UTF8')), 'hex')",
    "created_at": "c.at",
    "available_at": "c.at",
}


def load(deliveries: int, *, prefix: str) -> None:
    """Make `<prefix>core` a database with a backlog of `deliveries` pending deliveries."""
    ground.copy(of=ground.EMPTY, to=prefix)
    children.run("preload", "--events", "2", prefix=prefix)
    with ground.administrator(f"{prefix}core") as connection:
        add(connection, deliveries - 2)
    ground.settled(f"{prefix}core")


def add(connection: psycopg.Connection[tuple[Any, ...]], deliveries: int) -> None:
    """Add copies of the first admission, in an administrator's connection."""
    values = {
        "salt": f"bench {deliveries} {connection.info.backend_pid}",
        "start": "now",
        "rows": ROWS_OF_ONE_TIME,
        "pairs": deliveries // 2,
    }
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SELECT (now() - interval '1 hour')::text")
        row = cursor.fetchone()
        assert row is not None
        cursor.execute(PREPARE.replace("%%", "%").encode())
        client = psycopg.ClientCursor(connection)
        client.execute(COPIES, values | {"start": row[0]})
        for table, statement, alias in (
            ("outbox_events", EVENTS, "e"),
            ("outbox_deliveries", DELIVERIES, "d"),
        ):
            columns = columns_of(connection, table)
            told = [CHANGED.get(column, f"{alias}.{column}") for column in columns]
            cursor.execute(statement.format(columns=", ".join(columns), values=", ".join(told)).encode())
        cursor.execute("DROP TABLE copies; DROP TABLE original")


def columns_of(connection: psycopg.Connection[tuple[Any, ...]], table: str) -> list[str]:
    """The columns that an INSERT names, in order."""
    rows = connection.execute(
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
        [table],
    ).fetchall()
    return [str(row[0]) for row in rows]
