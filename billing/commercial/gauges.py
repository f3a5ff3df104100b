"""Quota that is held now, read from billing's database at scrape, by the owner whose business code holds it."""

from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from config.owners import Owner, with_markers
from outbox.gauges import Sample
from outbox.metrics import Kind, Metric

CAP = 10_000
"""Held reservations that one scrape looks at, oldest first."""

GAUGES: tuple[Metric, ...] = (
    Metric("commercial_held_reservations", Kind.GAUGE, ("business",), "Reservations whose work has not ended yet."),
    Metric("commercial_oldest_held_seconds", Kind.GAUGE, ("business",), "For how long the oldest of them is held."),
)

HELD = """
SELECT business, count(*), extract(epoch FROM now() - min(reserved_at))
  FROM (SELECT business, reserved_at FROM commercial_runtime_reservations
         WHERE state = 'reserved' ORDER BY reserved_at, reservation_id LIMIT %s) r
 GROUP BY business
"""


def read(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of `GAUGES`."""
    cursor.execute(HELD, [CAP])
    held = {business: (count, seconds) for business, count, seconds in cursor.fetchall()}
    for business in with_markers():
        count, seconds = held.get(business.name, (0, 0))
        yield Sample("commercial_held_reservations", (business.name,), float(count))
        yield Sample("commercial_oldest_held_seconds", (business.name,), max(0.0, float(seconds)))
