"""What a producer's outbox is, read from its database at scrape: backlog, leases, quarantine (O33).

It is true when no worker runs and when every counter was lost. Each statement walks one index and stops at a cap, so a
scrape costs the same on millions of rows; a value that reached its cap reads as "at least".
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.backends.utils import CursorWrapper

from config.owners import Owner, consumers
from outbox.metrics import Kind, Metric, bounded

COUNT_CAP = 50_000
"""Rows of one destination and state that one scrape counts: an index-only walk of about 20 ms."""
GROUP_CAP = 10_000
"""Quarantined rows of one reason, event type and destination that one scrape counts."""
MAX_GROUPS = 200
"""Combinations of reason, event type and destination that one scrape shows."""

SCHEMA_REJECTS = frozenset({"schema_rejected", "unknown_event", "unknown_digest_algorithm", "unknown_projection"})
"""Quarantine reasons by which a consumer says that it cannot read the event, not that the event is wrong."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one gauge; `labels` in the order of its metric."""

    name: str
    labels: tuple[str, ...]
    value: float


GAUGES: tuple[Metric, ...] = (
    Metric(
        "outbox_pending",
        Kind.GAUGE,
        ("producer", "destination", "state"),
        "Deliveries that are not terminal: due, later (waits for its time), leased, or awaiting_consumer (none bound).",
    ),
    Metric(
        "outbox_oldest_pending_seconds",
        Kind.GAUGE,
        ("producer", "destination", "state"),
        "Age of the oldest delivery that is not terminal: in_delivery, or awaiting_consumer.",
    ),
    Metric(
        "outbox_expired_lease_seconds",
        Kind.GAUGE,
        ("producer", "destination"),
        "For how long the oldest expired lease has been waiting for a worker to recover it.",
    ),
    Metric(
        "outbox_quarantine_rows",
        Kind.GAUGE,
        ("producer", "destination", "event_type", "reason"),
        "Deliveries in quarantine.",
    ),
    Metric(
        "outbox_schema_rejects", Kind.GAUGE, ("producer", "destination"), "Quarantined: the consumer cannot read it."
    ),
    Metric(
        "outbox_last_quarantined_timestamp_seconds",
        Kind.GAUGE,
        ("producer",),
        "When a delivery was last quarantined, Unix time; 0 if never.",
    ),
)

BACKLOG = """
SELECT m.destination, due.n, later.n, leased.n,
       extract(epoch FROM now() - least(due.oldest, later.oldest, leased.oldest)),
       extract(epoch FROM now() - leased.expires)
  FROM (SELECT DISTINCT destination FROM delivery_set_members WHERE event_type = ANY(%(events)s)) m
 CROSS JOIN LATERAL (
       SELECT count(*) AS n, min(created_at) AS oldest
         FROM (SELECT created_at FROM outbox_deliveries
                WHERE status = 'pending' AND destination = m.destination AND available_at <= now()
                ORDER BY available_at, created_at, event_id LIMIT %(cap)s) d) due
 CROSS JOIN LATERAL (
       SELECT count(*) AS n, min(created_at) AS oldest
         FROM (SELECT created_at FROM outbox_deliveries
                WHERE status = 'pending' AND destination = m.destination AND available_at > now()
                ORDER BY available_at, created_at, event_id LIMIT %(cap)s) d) later
 CROSS JOIN LATERAL (
       SELECT count(*) AS n, min(created_at) AS oldest, min(lease_expires_at) AS expires
         FROM (SELECT created_at, lease_expires_at FROM outbox_deliveries
                WHERE status = 'leased' AND destination = m.destination
                ORDER BY lease_expires_at LIMIT %(cap)s) d) leased
"""
QUARANTINE = """
WITH RECURSIVE kinds AS (
    (SELECT reason, event_type, destination FROM outbox_quarantine ORDER BY reason, event_type, destination LIMIT 1)
    UNION ALL
    SELECT n.reason, n.event_type, n.destination FROM kinds k CROSS JOIN LATERAL (
        SELECT q.reason, q.event_type, q.destination FROM outbox_quarantine q
         WHERE (q.reason, q.event_type, q.destination) > (k.reason, k.event_type, k.destination)
         ORDER BY q.reason, q.event_type, q.destination LIMIT 1) n
)
SELECT k.destination, k.event_type, k.reason, rows.n
  FROM (SELECT * FROM kinds LIMIT %(groups)s) k
 CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM (
           SELECT FROM outbox_quarantine q
            WHERE q.reason = k.reason AND q.event_type = k.event_type AND q.destination = k.destination
            LIMIT %(cap)s) r) rows
"""
LAST_QUARANTINED = """
SELECT extract(epoch FROM quarantined_at) FROM outbox_quarantine ORDER BY quarantined_at DESC LIMIT 1
"""


def read(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of `GAUGES` for one producer. Destinations without any row are there, with zeros."""
    destinations = set()
    for sample in backlog(owner, cursor):
        destinations.add(sample.labels[1])
        yield sample
    cursor.execute(QUARANTINE, {"groups": MAX_GROUPS, "cap": GROUP_CAP})
    yield from _quarantine(owner.name, cursor.fetchall(), destinations)
    cursor.execute(LAST_QUARANTINED)
    last = cursor.fetchone()
    yield Sample("outbox_last_quarantined_timestamp_seconds", (owner.name,), float(last[0]) if last else 0.0)


def backlog(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of one producer's backlog by destination: `outbox_pending`, its oldest age, and expired leases."""
    cursor.execute(BACKLOG, {"events": list(owner.events), "cap": COUNT_CAP})
    for row in cursor.fetchall():
        yield from _backlog(owner.name, row)


def bound_destinations() -> frozenset[str]:
    """Destinations whose consumer this deployment runs."""
    return frozenset(consumer.destination for _, consumer in consumers() if consumer.handler)


def _backlog(producer: str, row: tuple[Any, ...]) -> Iterator[Sample]:
    destination, due, later, leased, oldest, expired = row
    route = (producer, destination)
    awaits = destination not in bound_destinations()
    counts = {"awaiting_consumer": due + later, "leased": leased} if awaits else {
        "due": due, "later": later, "leased": leased, "awaiting_consumer": 0,
    }  # fmt: skip
    for state, count in counts.items():
        yield Sample("outbox_pending", (*route, state), float(count))
    state = "awaiting_consumer" if awaits else "in_delivery"
    yield Sample("outbox_oldest_pending_seconds", (*route, state), max(0.0, float(oldest or 0)))
    yield Sample("outbox_expired_lease_seconds", route, max(0.0, float(expired or 0)))


def _quarantine(producer: str, rows: list[tuple[Any, ...]], destinations: set[str]) -> Iterator[Sample]:
    counts: Counter[tuple[str, str, str]] = Counter()
    rejects: Counter[str] = Counter()
    for destination, event_type, reason, count in rows:
        counts[destination, bounded("event_type", event_type), bounded("reason", reason)] += count
        rejects[destination] += count if reason in SCHEMA_REJECTS else 0
    for (destination, event_type, reason), count in counts.items():
        yield Sample("outbox_quarantine_rows", (producer, destination, event_type, reason), float(count))
    for destination in destinations:
        yield Sample("outbox_schema_rejects", (producer, destination), float(rejects[destination]))
