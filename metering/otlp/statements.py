"""The SQL of storing, by kind. Composed once from `COLUMNS`; every value is a parameter."""

from dataclasses import dataclass

from metering.otlp.fields import COLUMNS, Kind, Shape
from metering.otlp.models.tally import BUCKET_SECONDS

TABLES: dict[Kind, str] = {
    Kind.LLM_BILLING: "llm_billing_events",
    Kind.RESOURCE_UTILIZATION: "resource_utilization_events",
}
_TYPES: dict[Shape, str] = {
    Shape.TEXT: "text",
    Shape.IDENTIFIER: "text",
    Shape.COUNT: "int8",
    Shape.LEVEL: "float8",
    Shape.FLAG: "bool",
}


@dataclass(frozen=True, slots=True)
class Statements:
    """What one kind needs, in the order of use."""

    make_staging: str
    """A table of this session that is empty at the start of every transaction."""
    copy: str
    copy_types: tuple[str, ...]
    """Types of the values of a row. A timestamp's binary form is the integer of its microseconds since 2000."""
    insert: str
    """(cluster, mode, window length) → windows of what was new: (start, count, retained from). In key order, so that
    two requests with the same events wait for each other instead of dying in a deadlock."""
    conflicts: str
    """(cluster) → every staged event that the stored one of its key contradicts: (event id, reason, fields, arrivals).
    A contradiction that is known already is counted again."""
    identify: str
    """(low, high) Give every event id received from low until before high its time, unless it has one; the first
    received of several times is the one."""
    find_twins: str
    """(low, high, window length) → events received then whose id stands under another time, now known as conflicts:
    (event id, cluster, fields). Their windows are marked."""
    first_received: str
    """(low, high) → when the first event from low until before high was received."""


def _statements(kind: Kind) -> Statements:
    table, staged = TABLES[kind], f"staged_{kind.value}"
    columns = {column.name: _TYPES[column.shape] for column in COLUMNS[kind]}
    names = ", ".join(columns)
    compared = [name for name in columns if name != "event_id"]
    staged_columns = ", ".join(f"{name} {kind_of}" for name, kind_of in columns.items())
    differing = ", ".join(f"CASE WHEN e.{name} IS DISTINCT FROM s.{name} THEN '{name}' END" for name in compared)

    def of(row: str) -> str:
        return ", ".join(f"{row}.{name}" for name in compared)

    pairs = ", ".join(f"'{name}', s.{name}" for name in columns)
    return Statements(
        make_staging=f"""
CREATE TEMPORARY TABLE IF NOT EXISTS {staged} ({staged_columns}, occurred_at timestamptz) ON COMMIT DELETE ROWS
""",
        copy=f"COPY {staged} ({names}, occurred_at) FROM STDIN (FORMAT BINARY)",
        copy_types=(*columns.values(), "int8"),
        insert=f"""
WITH stored AS (
    INSERT INTO {table} ({names}, occurred_at, cluster_id, source_mode)
    SELECT {names}, occurred_at, %(cluster)s, %(mode)s FROM {staged} ORDER BY occurred_at, event_id COLLATE "C", ctid
    ON CONFLICT (event_id, occurred_at) DO NOTHING
    RETURNING occurred_at
)
SELECT date_bin(%(window)s, occurred_at, timestamptz 'epoch'), count(*),
       (SELECT retained_from FROM telemetry_retention WHERE kind = '{kind.value}')
  FROM stored GROUP BY 1
""",
        conflicts=f"""
WITH clashes AS (
    SELECT s.event_id, s.occurred_at, e.cluster_id AS standing_cluster_id,
           CASE WHEN e.cluster_id = %(cluster)s THEN 'content' ELSE 'cluster' END AS reason,
           concat_ws(',', CASE WHEN e.cluster_id <> %(cluster)s THEN 'cluster_id' END, {differing}) AS fields,
           jsonb_build_object('cluster_id', %(cluster)s::text, {pairs})::text AS arrived, count(*) AS arrivals
      FROM {staged} s
     CROSS JOIN LATERAL (SELECT * FROM {table} t
                          WHERE t.event_id = s.event_id AND t.occurred_at = s.occurred_at LIMIT 1) e
     WHERE e.cluster_id <> %(cluster)s
        OR ({of("e")}) IS DISTINCT FROM ({of("s")})
     GROUP BY 1, 2, 3, 4, 5, 6
), kept AS (
    INSERT INTO telemetry_conflicts AS c (kind, reason, event_id, occurred_at, cluster_id, standing_cluster_id,
           standing_occurred_at, fields, arrived, arrived_sha256, arrivals)
    SELECT '{kind.value}', reason, event_id, occurred_at, %(cluster)s, standing_cluster_id, occurred_at, fields,
           arrived, encode(sha256(convert_to(arrived, 'UTF8')), 'hex'), arrivals
      FROM clashes ORDER BY occurred_at, event_id
    ON CONFLICT (event_id, occurred_at, kind, reason, arrived_sha256)
    DO UPDATE SET arrivals = c.arrivals + excluded.arrivals, last_at = now()
)
SELECT event_id, reason, fields, arrivals FROM clashes
""",
        identify=f"""
INSERT INTO telemetry_event_identities (event_id, kind, occurred_at)
SELECT DISTINCT ON (event_id) event_id, '{kind.value}', occurred_at
  FROM {table} WHERE received_at >= %(low)s AND received_at < %(high)s
 ORDER BY event_id, received_at, occurred_at
ON CONFLICT (event_id, kind) DO NOTHING
""",
        find_twins=f"""
WITH twins AS (
    SELECT s.event_id, s.occurred_at, s.cluster_id, i.occurred_at AS standing_occurred_at,
           coalesce(e.cluster_id, s.cluster_id) AS standing_cluster_id,
           concat_ws(',', 'occurred_at', CASE WHEN e.cluster_id <> s.cluster_id THEN 'cluster_id' END,
                     CASE WHEN e.event_id IS NOT NULL THEN nullif(concat_ws(',', {differing}), '') END) AS fields,
           jsonb_build_object('cluster_id', s.cluster_id, 'occurred_at', s.occurred_at, {pairs})::text AS arrived
      FROM {table} s
      JOIN telemetry_event_identities i
        ON i.event_id = s.event_id AND i.kind = '{kind.value}' AND i.occurred_at <> s.occurred_at
      LEFT JOIN {table} e ON e.event_id = i.event_id AND e.occurred_at = i.occurred_at
     WHERE s.received_at >= %(low)s AND s.received_at < %(high)s
), kept AS (
    INSERT INTO telemetry_conflicts (kind, reason, event_id, occurred_at, cluster_id, standing_cluster_id,
           standing_occurred_at, fields, arrived, arrived_sha256)
    SELECT '{kind.value}', 'two_times', event_id, occurred_at, cluster_id, standing_cluster_id, standing_occurred_at,
           fields, arrived, encode(sha256(convert_to(arrived, 'UTF8')), 'hex')
      FROM twins ORDER BY occurred_at, event_id
    ON CONFLICT (event_id, occurred_at, kind, reason, arrived_sha256) DO NOTHING
    RETURNING event_id, occurred_at, cluster_id, fields
), marked AS (
    INSERT INTO consumption_windows_dirty AS w (kind, cluster_id, window_start)
    SELECT DISTINCT '{kind.value}', cluster_id, date_bin(%(window)s, occurred_at, timestamptz 'epoch') AS start
      FROM kept ORDER BY cluster_id, start
    ON CONFLICT (kind, cluster_id, window_start)
    DO UPDATE SET marked_generation = w.marked_generation + 1, marked_at = now()
)
SELECT event_id, cluster_id, fields FROM kept
""",
        first_received=f"""
SELECT min(received_at) FROM {table} WHERE received_at >= %(low)s AND received_at < %(high)s
""",
    )


STATEMENTS: dict[Kind, Statements] = {kind: _statements(kind) for kind in Kind}

SCAN = """
INSERT INTO telemetry_identity_scans (kind, scanned_until) VALUES (%s, timestamptz '2000-01-01 00:00+00')
ON CONFLICT (kind) DO NOTHING
"""
TAKE_SCAN = "SELECT scanned_until FROM telemetry_identity_scans WHERE kind = %s FOR UPDATE SKIP LOCKED"
MOVE_SCAN = "UPDATE telemetry_identity_scans SET scanned_until = %(high)s WHERE kind = %(kind)s"
HORIZON = """
SELECT least(clock_timestamp(), min(xact_start)) FROM pg_stat_activity
 WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
"""
"""An event carries the start of its transaction, so what was received before the oldest open one is complete."""

EXPIRE_DAYS = "SELECT telemetry_expire_days(%s, %s, %s)"
PURGE_IDENTITIES = """
DELETE FROM telemetry_event_identities WHERE ctid = ANY (ARRAY(
    SELECT i.ctid FROM telemetry_event_identities i JOIN telemetry_retention r ON r.kind = i.kind
     WHERE i.kind = %(kind)s AND i.occurred_at < r.retained_from LIMIT %(most)s))
"""

ENSURE_DAYS = "SELECT telemetry_ensure_days(%s, %s::date[])"
RETAINED = "SELECT kind, retained_from FROM telemetry_retention"

MARK_WINDOWS = """
INSERT INTO consumption_windows_dirty AS w (kind, cluster_id, window_start)
SELECT kind, %(cluster)s, start FROM unnest(%(kinds)s::text[], %(starts)s::timestamptz[]) AS u (kind, start)
 ORDER BY kind, start
ON CONFLICT (kind, cluster_id, window_start)
DO UPDATE SET marked_generation = w.marked_generation + 1, marked_at = now()
"""
"""One row lock per window until commit, so this comes last but for the tallies, and in one order."""

TALLY = f"""
INSERT INTO telemetry_tallies AS t (cluster_id, kind, bucket, accepted, stored, duplicates, conflicts)
SELECT %(cluster)s, kind, date_bin('{BUCKET_SECONDS} seconds', now(), timestamptz 'epoch'),
       stored + duplicates + conflicts, stored, duplicates, conflicts
  FROM unnest(%(kinds)s::text[], %(stored)s::bigint[], %(duplicates)s::bigint[], %(conflicts)s::bigint[])
       AS u (kind, stored, duplicates, conflicts)
 ORDER BY kind
ON CONFLICT (cluster_id, kind, bucket)
DO UPDATE SET accepted = t.accepted + excluded.accepted, stored = t.stored + excluded.stored,
              duplicates = t.duplicates + excluded.duplicates, conflicts = t.conflicts + excluded.conflicts,
              last_at = now()
"""
COUNT_DROPS = f"""
INSERT INTO telemetry_drops AS d (cluster_id, kind, reason, bucket, dropped, last_event_id)
SELECT %(cluster)s, kind, reason, date_bin('{BUCKET_SECONDS} seconds', now(), timestamptz 'epoch'), dropped, event_id
  FROM unnest(%(kinds)s::text[], %(reasons)s::text[], %(dropped)s::bigint[], %(event_ids)s::text[])
       AS u (kind, reason, dropped, event_id)
 ORDER BY kind, reason
ON CONFLICT (cluster_id, kind, reason, bucket)
DO UPDATE SET dropped = d.dropped + excluded.dropped, last_event_id = coalesce(excluded.last_event_id, d.last_event_id),
              last_at = now()
"""
