"""What the store of telemetry is, read at scrape: days ahead, how far the scan of ids is behind, conflicts (T11)."""

from collections.abc import Iterator

from django.conf import settings
from django.db.backends.utils import CursorWrapper

from config.owners import Owner
from metering.otlp.fields import Kind
from metering.otlp.models import ConflictReason
from metering.otlp.statements import TABLES
from outbox.gauges import Sample
from outbox.metrics import Kind as Type
from outbox.metrics import Metric

CAP = 10_000
"""Conflicts of one reason that one scrape counts."""

GAUGES: tuple[Metric, ...] = (
    Metric("otlp_days_ahead", Type.GAUGE, ("kind",), "Days after today for which events can be stored at once."),
    Metric(
        "otlp_identity_lag_seconds", Type.GAUGE, ("kind",), "How far the scan for event ids at two times is behind."
    ),
    Metric("otlp_conflict_rows", Type.GAUGE, ("reason",), "Known contradictions of stored events."),
)

DAYS_AHEAD = """
SELECT c.relkind = 'r', count(p.oid) FILTER (WHERE right(p.relname, 8) > to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')
                                               AND p.relname NOT LIKE '%%\\_early')
  FROM pg_class c
  LEFT JOIN pg_inherits i ON i.inhparent = c.oid LEFT JOIN pg_class p ON p.oid = i.inhrelid
 WHERE c.oid = to_regclass(%s) GROUP BY 1
"""
LAG = "SELECT kind, extract(epoch FROM now() - scanned_until) FROM telemetry_identity_scans"
CONFLICTS = "SELECT count(*) FROM (SELECT FROM telemetry_conflicts WHERE reason = %s LIMIT %s) c"


def read(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of `GAUGES`."""
    for kind, table in TABLES.items():
        cursor.execute(DAYS_AHEAD, [f"public.{table}"])
        is_hypertable, ahead = cursor.fetchone()
        yield Sample("otlp_days_ahead", (kind.value,), float(settings.OTLP_DAYS_AHEAD if is_hypertable else ahead))
    cursor.execute(LAG)
    lags = {kind: float(seconds) for kind, seconds in cursor.fetchall()}
    for kind in Kind:
        yield Sample("otlp_identity_lag_seconds", (kind.value,), max(0.0, lags.get(kind.value, 0.0)))
    for reason in ConflictReason.values:
        cursor.execute(CONFLICTS, [reason, CAP])
        yield Sample("otlp_conflict_rows", (reason,), float(cursor.fetchone()[0]))
