"""What must be true after every crash: everything arrived, its effect exists once, and all invariants hold."""

from config.verify.report import verify
from tests.ground.waiting import until
from tests.outbox.conftest import rows

OPEN = "SELECT count(*) FROM outbox_deliveries WHERE status IN ('pending', 'leased')"
EFFECTS = """
SELECT (SELECT count(*) FROM outbox_events), (SELECT count(*) FROM outbox_deliveries WHERE status = 'acknowledged'),
       (SELECT count(*) FROM operations_projection_applied_receipts), (SELECT count(*) FROM timeline_entries),
       (SELECT coalesce(sum(applied_events), 0) FROM projection_build_runs)
"""


def drained() -> None:
    """Wait until nothing is open."""
    until(lambda: rows(OPEN) == [(0,)])


def outcomes() -> dict[str, int]:
    """How the attempts of all deliveries ended."""
    return dict(rows("SELECT outcome, count(*) FROM outbox_delivery_attempt_finishes GROUP BY 1"))


def prove_applied_once(events: int) -> None:
    """Every event is acknowledged, was applied exactly once, and `verify` finds nothing."""
    assert rows(EFFECTS) == [(events,) * 5]
    report = verify()
    assert report.ok, [tally.samples for _, tally in report.found if tally.violations]
