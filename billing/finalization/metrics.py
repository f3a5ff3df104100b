"""Holds of which billing does not know yet whether core has their run, read from billing's database at scrape."""

from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from config.owners import Owner
from outbox.gauges import Sample
from outbox.metrics import Kind, Metric

CAP = 10_000
"""Unconfirmed holds that one scrape counts."""

GAUGES: tuple[Metric, ...] = (
    Metric(
        "billing_unconfirmed_holds", Kind.GAUGE, (), "Open reservations that core has neither confirmed nor refused."
    ),
    Metric(
        "billing_oldest_unconfirmed_hold_seconds",
        Kind.GAUGE,
        (),
        "For how long the oldest of them has been waiting.",
    ),
)

UNCONFIRMED = """
SELECT count(*), extract(epoch FROM now() - min(reserved_at))
  FROM (SELECT reserved_at FROM billing_reservations
         WHERE state = 'open' AND confirmed_at IS NULL ORDER BY reserved_at LIMIT %(cap)s) r
"""


def read(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of `GAUGES`."""
    cursor.execute(UNCONFIRMED, {"cap": CAP})
    count, seconds = cursor.fetchone()
    yield Sample("billing_unconfirmed_holds", (), float(count))
    yield Sample("billing_oldest_unconfirmed_hold_seconds", (), max(0.0, float(seconds or 0)))
