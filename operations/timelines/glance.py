"""How the projector stands: operations, reservations without their run, waiting revisions; in one statement."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connections

COUNT_CAP = 10_000

GLANCE = f"""
SELECT (SELECT count(*) FROM (SELECT FROM operation_summaries LIMIT {COUNT_CAP + 1}) counted),
       (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'operation_summaries'::regclass),
       u.number, u.oldest, m.number, g.number, g.oldest,
       (SELECT string_agg(projection_name || ' ' || projection_version, ', ') FROM projection_active_pointers)
  FROM (SELECT count(*) AS number, min(recorded_at) AS oldest FROM (
            SELECT recorded_at FROM pending_unlinked_reservations WHERE state = 'pending'
             ORDER BY recorded_at LIMIT {COUNT_CAP + 1}) counted) u,
       (SELECT count(*) AS number FROM (
            SELECT FROM pending_unlinked_reservations WHERE state = 'mismatched' LIMIT {COUNT_CAP + 1}) counted) m,
       (SELECT count(*) AS number, min(detected_at) AS oldest FROM (
            SELECT detected_at FROM revision_gaps WHERE state = 'open'
             ORDER BY detected_at LIMIT {COUNT_CAP + 1}) counted) g
"""


@dataclass(frozen=True, slots=True)
class OperationsGlance:
    """Counts stop at `COUNT_CAP` + 1; beyond it `operations` is the planner's estimate."""

    operations: int
    unlinked: int
    unlinked_since: datetime | None
    mismatched: int
    gaps: int
    gaps_since: datetime | None
    projection: str | None


def operations_glance(alias: str) -> OperationsGlance:
    """Read it. Raises Django's database errors when the database gives no answer."""
    with connections[alias].cursor() as cursor:
        cursor.execute(GLANCE)
        counted, estimate, *rest = cursor.fetchone()
    return OperationsGlance(counted if counted <= COUNT_CAP else max(estimate, counted), *rest)
