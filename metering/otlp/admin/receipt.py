"""What arrived from clusters, read for people: every statement goes by an index of cluster or of time."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connections

from metering.otlp.fields import Field, Kind
from metering.otlp.models.tally import BUCKET_SECONDS, UNKNOWN_KIND

STEP = timedelta(seconds=BUCKET_SECONDS)
HOURS, DAYS = 24, 30
STEPS = timedelta(hours=HOURS) // STEP
MOST_SENDERS = 200
"""Clusters that the list shows; the page of any other is reached by its number."""

_CLUSTERS_OF = """
    (SELECT cluster_id, 1 AS nth FROM {table} ORDER BY cluster_id LIMIT 1)
    UNION ALL
    SELECT n.cluster_id, c.nth + 1 FROM {name} c CROSS JOIN LATERAL (
        SELECT t.cluster_id FROM {table} t WHERE t.cluster_id > c.cluster_id ORDER BY t.cluster_id LIMIT 1) n
     WHERE c.nth < {most}
"""
_LAST_AT = """
(SELECT t.last_at FROM telemetry_tallies t WHERE t.cluster_id = {cluster} AND t.kind = '{kind}'
  ORDER BY t.bucket DESC LIMIT 1)
"""
SENDERS = f"""
WITH RECURSIVE tallied AS ({_CLUSTERS_OF.format(name="tallied", table="telemetry_tallies", most=MOST_SENDERS)}
), refused AS ({_CLUSTERS_OF.format(name="refused", table="telemetry_drops", most=MOST_SENDERS)}
), clusters AS (SELECT cluster_id FROM tallied UNION SELECT cluster_id FROM refused
), today AS (
    SELECT cluster_id, sum(stored)::bigint AS stored, sum(duplicates)::bigint AS duplicates,
           sum(conflicts)::bigint AS conflicts
      FROM telemetry_tallies WHERE bucket >= now() - interval '{HOURS} hours' GROUP BY 1
), dropped_today AS (
    SELECT cluster_id, sum(dropped)::bigint AS dropped
      FROM telemetry_drops WHERE bucket >= now() - interval '{HOURS} hours' GROUP BY 1
)
SELECT c.cluster_id, {_LAST_AT.format(cluster="c.cluster_id", kind=Kind.LLM_BILLING.value)},
       {_LAST_AT.format(cluster="c.cluster_id", kind=Kind.RESOURCE_UTILIZATION.value)},
       coalesce(t.stored, 0), coalesce(t.duplicates, 0), coalesce(t.conflicts, 0), coalesce(d.dropped, 0)
  FROM clusters c LEFT JOIN today t USING (cluster_id) LEFT JOIN dropped_today d USING (cluster_id)
"""
"""Jumps from cluster to cluster in the index, so it costs per cluster and not per row."""
ALL_STEPS = f"""
SELECT bucket, kind, sum(stored)::bigint, sum(duplicates)::bigint, sum(conflicts)::bigint FROM telemetry_tallies
 WHERE bucket >= now() - interval '{HOURS} hours' GROUP BY 1, 2
"""
OWN_STEPS = f"""
SELECT bucket, kind, stored, duplicates, conflicts FROM telemetry_tallies
 WHERE cluster_id = %(cluster)s AND kind = ANY(%(kinds)s) AND bucket >= now() - interval '{HOURS} hours'
"""
OWN_DAYS = f"""
SELECT (bucket AT TIME ZONE 'UTC')::date, kind, sum(accepted)::bigint FROM telemetry_tallies
 WHERE cluster_id = %(cluster)s AND kind = ANY(%(kinds)s) AND bucket >= now() - interval '{DAYS} days' GROUP BY 1, 2
"""
LAST_SEEN = f"""
SELECT {_LAST_AT.format(cluster="%(cluster)s", kind=Kind.LLM_BILLING.value)},
       {_LAST_AT.format(cluster="%(cluster)s", kind=Kind.RESOURCE_UTILIZATION.value)}
"""
OWN_DROPS = f"""
SELECT bucket, reason, kind, dropped, last_event_id, last_at FROM telemetry_drops
 WHERE cluster_id = %(cluster)s AND kind = ANY(%(drop_kinds)s) AND reason = ANY(%(reasons)s)
   AND bucket >= now() - interval '{HOURS} hours'
 ORDER BY bucket
"""


@dataclass(frozen=True, slots=True)
class Sender:
    """One cluster: when its last event of each kind arrived, and what became of those of the last `HOURS` hours."""

    cluster_id: str
    llm_at: datetime | None
    resource_at: datetime | None
    stored: int
    duplicates: int
    conflicts: int
    dropped: int

    @property
    def last_at(self) -> datetime | None:
        """When its last event arrived."""
        return max((at for at in (self.llm_at, self.resource_at) if at), default=None)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Counts per ten minutes of the last `HOURS` hours, oldest first; `stored` by kind."""

    starts: tuple[datetime, ...]
    stored: dict[Kind, list[int]]
    duplicates: list[int]
    conflicts: list[int]


def senders(alias: str) -> list[Sender]:
    """The clusters from which anything came, in order of their numbers; at most some `MOST_SENDERS`."""
    with connections[alias].cursor() as cursor:
        cursor.execute(SENDERS)
        return sorted((Sender(*row) for row in cursor.fetchall()), key=lambda sender: int(sender.cluster_id))


def arrivals(alias: str, *, now: datetime, cluster_id: str | None = None) -> Arrivals:
    """What arrived from one cluster, or from all."""
    with connections[alias].cursor() as cursor:
        if cluster_id is None:
            cursor.execute(ALL_STEPS)
        else:
            cursor.execute(OWN_STEPS, {"cluster": cluster_id, "kinds": [kind.value for kind in Kind]})
        rows = cursor.fetchall()
    starts = steps(now)
    place = {start: number for number, start in enumerate(starts)}
    found = Arrivals(starts, {kind: [0] * STEPS for kind in Kind}, [0] * STEPS, [0] * STEPS)
    for bucket, kind, stored, duplicates, conflicts in rows:
        number = place.get(bucket)
        if number is not None:
            found.stored[Kind(kind)][number] += stored
            found.duplicates[number] += duplicates
            found.conflicts[number] += conflicts
    return found


def accepted_by_day(alias: str, *, now: datetime, cluster_id: str) -> tuple[list[Any], dict[Kind, list[int]]]:
    """The last `DAYS` days, and the events of each kind accepted on each."""
    today = now.astimezone(UTC).date()
    days = [today - timedelta(days=DAYS - 1 - number) for number in range(DAYS)]
    counts: dict[Kind, list[int]] = {kind: [0] * DAYS for kind in Kind}
    with connections[alias].cursor() as cursor:
        cursor.execute(OWN_DAYS, {"cluster": cluster_id, "kinds": [kind.value for kind in Kind]})
        for day, kind, accepted in cursor.fetchall():
            if day >= days[0] and day <= today:
                counts[Kind(kind)][(day - days[0]).days] = accepted
    return days, counts


def last_seen(alias: str, cluster_id: str) -> dict[Kind, datetime | None]:
    """When the last event of each kind arrived."""
    with connections[alias].cursor() as cursor:
        cursor.execute(LAST_SEEN, {"cluster": cluster_id})
        llm, resource = cursor.fetchone()
    return {Kind.LLM_BILLING: llm, Kind.RESOURCE_UTILIZATION: resource}


def drops(alias: str, cluster_id: str) -> list[tuple[datetime, str, str, int, str | None, datetime]]:
    """(ten minutes, reason, kind, count, last event id, last time) of the last `HOURS` hours, oldest first."""
    values: dict[str, Any] = {
        "cluster": cluster_id,
        "drop_kinds": [*(kind.value for kind in Kind), UNKNOWN_KIND],
        "reasons": [field.value for field in Field],
    }
    with connections[alias].cursor() as cursor:
        cursor.execute(OWN_DROPS, values)
        return list(cursor.fetchall())


def steps(now: datetime) -> tuple[datetime, ...]:
    """The starts of the last `STEPS` spans of ten minutes; the last is the present one."""
    seconds = int(now.timestamp()) // BUCKET_SECONDS * BUCKET_SECONDS
    last = datetime.fromtimestamp(seconds, tz=UTC)
    return tuple(last - STEP * (STEPS - 1 - number) for number in range(STEPS))


def by_step(rows: Sequence[tuple[Any, ...]], starts: Sequence[datetime]) -> dict[str, list[int]]:
    """Drops per reason and step, the most frequent reason first."""
    place = {start: number for number, start in enumerate(starts)}
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(starts))
    for bucket, reason, _, dropped, *_ in rows:
        if bucket in place:
            counts[reason][place[bucket]] += dropped
    return dict(sorted(counts.items(), key=lambda item: (-sum(item[1]), item[0])))
