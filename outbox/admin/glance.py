"""The state of one producer's outbox at a glance, in one statement through its read alias.

Every count stops at a cap, so a backlog of millions costs what one of `BACKLOG_CAP` costs. The ages of a longer backlog
are those of its most overdue `BACKLOG_CAP` rows.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connections

from config.owners import Owner
from outbox.admin.deliveries import is_bound
from outbox.admin.quarantine import COUNT_CAP, GROUPS, Group

BACKLOG_CAP = 50_000
RATE_WINDOW = timedelta(minutes=5)
RATE_STEP = timedelta(seconds=10)
STEPS = RATE_WINDOW // RATE_STEP

GLANCE = f"""
SELECT now(),
       (SELECT coalesce(reltuples, 0)::bigint FROM pg_class WHERE oid = 'outbox_events'::regclass),
       (SELECT coalesce(json_agg(b), '[]') FROM (
            SELECT d.destination, p.number AS pending, p.due, p.oldest AS oldest_pending,
                   l.number AS leased, l.expired, l.oldest AS oldest_leased
              FROM (SELECT DISTINCT destination FROM delivery_set_members
                     WHERE event_type = ANY(%(events)s::text[])) d
             CROSS JOIN LATERAL (
                    SELECT count(*) AS number, count(*) FILTER (WHERE available_at <= now()) AS due,
                           extract(epoch FROM min(created_at)) AS oldest
                      FROM (SELECT available_at, created_at FROM outbox_deliveries
                             WHERE status = 'pending' AND destination = d.destination
                             ORDER BY available_at LIMIT {BACKLOG_CAP + 1}) capped) p
             CROSS JOIN LATERAL (
                    SELECT count(*) AS number, count(*) FILTER (WHERE lease_expires_at <= now()) AS expired,
                           extract(epoch FROM min(created_at)) AS oldest
                      FROM (SELECT lease_expires_at, created_at FROM outbox_deliveries
                             WHERE status = 'leased' AND destination = d.destination
                             ORDER BY lease_expires_at LIMIT {BACKLOG_CAP + 1}) capped) l
             ORDER BY d.destination) b),
       (SELECT coalesce(json_agg(q), '[]') FROM ({GROUPS}) q),
       (SELECT coalesce(json_agg(r), '[]') FROM (
            SELECT floor(extract(epoch FROM now() - finished_at) / {RATE_STEP.total_seconds()})::int AS ago,
                   count(*) FILTER (WHERE outcome = 'acknowledged') AS acknowledged,
                   count(*) FILTER (WHERE outcome <> 'acknowledged') AS failed
              FROM outbox_delivery_attempt_finishes
             WHERE finished_at > now() - interval '{RATE_WINDOW.total_seconds()} seconds'
             GROUP BY 1) r)
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for one destination. `oldest` is when its oldest waiting delivery was created."""

    destination: str
    pending: int
    due: int
    leased: int
    expired: int
    oldest: datetime | None
    quarantined: int
    bound: bool

    @property
    def waiting(self) -> int:
        return self.pending + self.leased

    @property
    def capped(self) -> bool:
        """Whether more wait than were counted."""
        return self.pending > BACKLOG_CAP or self.leased > BACKLOG_CAP


@dataclass(frozen=True, slots=True)
class Glance:
    """One producer at `at` (its database's clock). Rates are per step of `RATE_STEP`, oldest first."""

    at: datetime
    events: int
    backlogs: tuple[Backlog, ...]
    groups: tuple[Group, ...]
    acknowledged: tuple[int, ...]
    failed: tuple[int, ...]

    @property
    def waiting(self) -> int:
        return sum(backlog.waiting for backlog in self.backlogs)

    @property
    def quarantined(self) -> int:
        return sum(backlog.quarantined for backlog in self.backlogs)

    @property
    def oldest(self) -> datetime | None:
        return min((backlog.oldest for backlog in self.backlogs if backlog.oldest), default=None)

    @property
    def awaiting_consumer(self) -> int:
        return sum(backlog.waiting for backlog in self.backlogs if not backlog.bound)

    @property
    def capped(self) -> bool:
        return any(backlog.capped or backlog.quarantined > COUNT_CAP for backlog in self.backlogs)

    @property
    def per_second(self) -> float:
        """Deliveries acknowledged per second over the window."""
        return sum(self.acknowledged) / RATE_WINDOW.total_seconds()

    @property
    def recent_failures(self) -> int:
        return sum(self.failed)


def glance(owner: Owner) -> Glance:
    """Read it, for the destinations of the owner's own events. Raises Django's errors of a database that is away."""
    with connections[owner.read_alias].cursor() as cursor:
        cursor.execute(GLANCE, {"events": list(owner.events)})
        at, events, backlogs, quarantine, rates = cursor.fetchone()
    groups = tuple(_group(row) for row in quarantine)
    quarantined = Counter[str]()
    for group in groups:
        quarantined[group.destination] += group.number
    steps: dict[int, Any] = {row["ago"]: row for row in rates}
    newest_last = [steps.get(ago, {"acknowledged": 0, "failed": 0}) for ago in reversed(range(STEPS))]
    return Glance(
        at=at,
        events=max(events, 0),
        groups=groups,
        backlogs=tuple(_backlog(row, at, quarantined) for row in backlogs),
        acknowledged=tuple(row["acknowledged"] for row in newest_last),
        failed=tuple(row["failed"] for row in newest_last),
    )


def _backlog(row: dict[str, Any], at: datetime, quarantined: Counter[str]) -> Backlog:
    oldest = [seconds for seconds in (row["oldest_pending"], row["oldest_leased"]) if seconds is not None]
    return Backlog(
        destination=row["destination"],
        pending=row["pending"],
        due=row["due"],
        leased=row["leased"],
        expired=row["expired"],
        oldest=datetime.fromtimestamp(min(oldest), tz=at.tzinfo) if oldest else None,
        quarantined=quarantined[row["destination"]],
        bound=is_bound(row["destination"]),
    )


def _group(row: dict[str, Any]) -> Group:
    first, last = (datetime.fromisoformat(row[name]) for name in ("first_at", "last_at"))
    return Group(row["reason"], row["event_type"], row["destination"], row["number"], first, last)
