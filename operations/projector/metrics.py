"""What the projector has not applied, read from core's database at scrape (O26, O29, O33)."""

from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from config.owners import Owner, producers
from operations.projector.contracts import DESTINATION
from outbox.gauges import Sample
from outbox.metrics import Kind, Metric

NEWEST = 10_000
"""How far back one scrape compares events with receipts; `manage.py verify` compares all of them."""
CAP = 10_000
"""Open gaps, and unlinked reservations, that one scrape counts."""

GAUGES: tuple[Metric, ...] = (
    Metric(
        "operations_unapplied_events",
        Kind.GAUGE,
        ("source",),
        "Among the newest events of a source, those without a receipt of the active projection.",
    ),
    Metric(
        "operations_acknowledged_without_receipt",
        Kind.GAUGE,
        (),
        "Among the newest deliveries of core, acknowledged ones without a receipt of their projection; always 0.",
    ),
    Metric("operations_revision_gaps", Kind.GAUGE, ("producer",), "Events that wait for an earlier revision."),
    Metric(
        "operations_oldest_revision_gap_seconds",
        Kind.GAUGE,
        ("producer",),
        "For how long the oldest of them has been waiting.",
    ),
    Metric("operations_unlinked_reservations", Kind.GAUGE, (), "Reservations whose run event has not arrived."),
    Metric(
        "operations_oldest_unlinked_reservation_seconds",
        Kind.GAUGE,
        (),
        "For how long the oldest of them has been waiting.",
    ),
)

WITHOUT_RECEIPT = """
NOT EXISTS (SELECT FROM operations_projection_applied_receipts r
             WHERE r.event_id = s.event_id AND r.projection_name = {name} AND r.projection_version = {version})
"""
OWN_EVENTS = f"""
SELECT count(*) FILTER (WHERE {WITHOUT_RECEIPT.format(name="a.projection_name", version="a.projection_version")}),
       count(*) FILTER (WHERE s.status = 'acknowledged' AND
            {WITHOUT_RECEIPT.format(name="s.required_projection_name", version="s.required_projection_version")})
  FROM (SELECT event_id, status, required_projection_name, required_projection_version FROM outbox_deliveries
         WHERE destination = %(destination)s ORDER BY event_id DESC LIMIT %(newest)s) s
  LEFT JOIN projection_active_pointers a ON a.projection_name = s.required_projection_name
"""
ACCEPTED_EVENTS = f"""
SELECT count(*) FILTER (WHERE {WITHOUT_RECEIPT.format(name="a.projection_name", version="a.projection_version")})
  FROM (SELECT event_id FROM operations_source_events ORDER BY event_id DESC LIMIT %(newest)s) s
 CROSS JOIN projection_active_pointers a
"""
OPEN_GAPS = """
SELECT producer, count(*), extract(epoch FROM now() - min(detected_at))
  FROM (SELECT producer, detected_at FROM revision_gaps WHERE state = 'open' ORDER BY detected_at LIMIT %(cap)s) g
 GROUP BY producer
"""
UNLINKED = """
SELECT count(*), extract(epoch FROM now() - min(recorded_at))
  FROM (SELECT recorded_at FROM pending_unlinked_reservations
         WHERE state = 'pending' ORDER BY recorded_at LIMIT %(cap)s) u
"""


def read(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of `GAUGES`; producers without a gap are there, with zeros."""
    cursor.execute(OWN_EVENTS, {"destination": DESTINATION, "newest": NEWEST})
    unapplied, unproven = cursor.fetchone()
    yield Sample("operations_unapplied_events", (owner.name,), float(unapplied))
    yield Sample("operations_acknowledged_without_receipt", (), float(unproven))
    cursor.execute(ACCEPTED_EVENTS, {"newest": NEWEST})
    yield Sample("operations_unapplied_events", ("other_owners",), float(cursor.fetchone()[0]))
    cursor.execute(OPEN_GAPS, {"cap": CAP})
    gaps = {producer: (count, seconds) for producer, count, seconds in cursor.fetchall()}
    for producer in producers():
        count, seconds = gaps.get(producer.name, (0, 0))
        yield Sample("operations_revision_gaps", (producer.name,), float(count))
        yield Sample("operations_oldest_revision_gap_seconds", (producer.name,), max(0.0, float(seconds)))
    cursor.execute(UNLINKED, {"cap": CAP})
    count, seconds = cursor.fetchone()
    yield Sample("operations_unlinked_reservations", (), float(count))
    yield Sample("operations_oldest_unlinked_reservation_seconds", (), max(0.0, float(seconds or 0)))
