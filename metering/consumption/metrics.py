"""How far consumption is behind, and what nobody is charged for, read from its database at scrape (T11, T13)."""

from collections.abc import Iterator

from django.conf import settings
from django.db.backends.utils import CursorWrapper

from config.owners import Owner
from metering.consumption.contracts import REFUSAL_MEANINGS
from metering.consumption.models import ChargeState, OrphanReason
from outbox.gauges import Sample
from outbox.metrics import Kind, Metric

CAP = 10_000
"""Rows of one kind that one scrape counts."""
NONE = "none"
"""The reason of what was not refused."""

GAUGES: tuple[Metric, ...] = (
    Metric("consumption_windows_due", Kind.GAUGE, (), "Windows that are over, changed, and are not summed up yet."),
    Metric(
        "consumption_oldest_due_window_seconds", Kind.GAUGE, (), "For how long the oldest of them has been waiting."
    ),
    Metric("consumption_orphan_lines", Kind.GAUGE, ("reason",), "Lines of usage that nobody is charged for."),
    Metric(
        "consumption_oldest_orphan_seconds", Kind.GAUGE, ("reason",), "Since when the oldest of them has been there."
    ),
    Metric(
        "consumption_unposted_charges",
        Kind.GAUGE,
        ("state", "reason"),
        "Charges that billing was not asked for, refused, or holds otherwise.",
    ),
    Metric(
        "consumption_oldest_unposted_charge_seconds",
        Kind.GAUGE,
        ("state", "reason"),
        "Since when the oldest of them has been owed as it is.",
    ),
)

DUE = """
SELECT count(*), extract(epoch FROM now() - min(greatest(marked_at, window_start + wait)))
  FROM (SELECT marked_at, window_start, make_interval(secs => %(seconds)s) AS wait FROM consumption_windows_dirty
         WHERE marked_generation > cleared_generation
           AND window_start <= now() - make_interval(secs => %(seconds)s)
         ORDER BY marked_at, kind, cluster_id, window_start LIMIT %(cap)s) w
"""
ORPHANS = """
SELECT count(*), extract(epoch FROM now() - min(first_at))
  FROM (SELECT first_at FROM consumption_lines WHERE orphan_reason = %(reason)s ORDER BY line_id LIMIT %(cap)s) l
"""
UNPOSTED = """
SELECT coalesce(refusal, 'none'), count(*), extract(epoch FROM now() - min(changed_at))
  FROM (SELECT refusal, changed_at FROM consumption_charges WHERE state = %(state)s
         ORDER BY consumption_charge_id LIMIT %(cap)s) c
 GROUP BY 1
"""
REASONS = {
    ChargeState.DUE: (NONE,),
    ChargeState.REFUSED: tuple(reason for reason in REFUSAL_MEANINGS if reason != "charged_from_runs"),
    ChargeState.CONFLICTING: (NONE,),
}
"""Every state and reason in which a charge is not posted; those that nothing is in are shown as 0."""


def read(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of `GAUGES`."""
    wait = settings.CONSUMPTION_WINDOW_SECONDS + settings.CONSUMPTION_CLOSE_AFTER
    cursor.execute(DUE, {"seconds": wait, "cap": CAP})
    count, seconds = cursor.fetchone()
    yield Sample("consumption_windows_due", (), float(count))
    yield Sample("consumption_oldest_due_window_seconds", (), max(0.0, float(seconds or 0)))
    for reason in OrphanReason:
        cursor.execute(ORPHANS, {"reason": reason.value, "cap": CAP})
        count, seconds = cursor.fetchone()
        yield Sample("consumption_orphan_lines", (reason.value,), float(count))
        yield Sample("consumption_oldest_orphan_seconds", (reason.value,), max(0.0, float(seconds or 0)))
    for state, reasons in REASONS.items():
        cursor.execute(UNPOSTED, {"state": state.value, "cap": CAP})
        found = {refusal: (count, seconds) for refusal, count, seconds in cursor.fetchall()}
        for refusal in reasons:
            count, seconds = found.get(refusal, (0, 0))
            yield Sample("consumption_unposted_charges", (state.value, refusal), float(count))
            age = max(0.0, float(seconds))
            yield Sample("consumption_oldest_unposted_charge_seconds", (state.value, refusal), age)
