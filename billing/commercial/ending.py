"""End a generation of a reservation as its marker says: settle what committed, release what was refused (C2).

Ending is one conditional UPDATE; whoever is second changes nothing. The database writes usage and cost, or gives back
what was taken, in the same statement (sql/counts.sql).
"""

import uuid
from enum import StrEnum

import structlog
from django.db import connections

from billing.commercial import metrics
from billing.commercial.errors import Contradiction, InFlight, NotCommitted, WrongTransaction
from billing.commercial.markers.mark import Decision, decide, look
from billing.commercial.markers.models import Verdict
from billing.commercial.models import EndedBy, ReservationState
from billing.commercial.permit import Permit
from billing.commercial.reserve import ALIAS
from outbox.raw import raw_cursor
from outbox.steps import reach

PATIENCE_SECONDS = 5.0
"""How long a caller that asks how its work ended waits for a transaction that is at work under the same key."""

SETTLE = """
UPDATE commercial_runtime_reservations SET state = 'settled', ended_at = clock_timestamp(), ended_by = %s
 WHERE reservation_id = %s AND generation = %s AND state || '' = 'reserved'
"""
"""`state || ''` keeps the planner off the partial index of held rows: it guesses its size wrong."""
RELEASE = "SELECT FROM commercial_release(%s, %s, %s) released WHERE released"
STANDING = "SELECT generation, state FROM commercial_runtime_reservations WHERE reservation_id = %s"

log = structlog.get_logger("billing.commercial")


class Ended(StrEnum):
    """How a permit ended."""

    SETTLED = "settled"
    """The work committed; its quantity is used."""
    RELEASED = "released"
    """The work is refused; nothing is held."""
    NOTHING = "nothing"
    """The permit held nothing: no meter, or counted before."""


def settle(permit: Permit) -> Ended:
    """Count the work of this permit, which must have committed. Repeating it changes nothing.

    Raises `NotCommitted` if the business database has no marker of it.
    """
    if not permit.holds_quota:
        return Ended.NOTHING
    if look(permit.marker, using=permit.using) is not Verdict.COMMITTED:
        raise NotCommitted(NotCommitted.__doc__)
    return end_permit(permit, ReservationState.SETTLED, by=EndedBy.CALLER)


def release(permit: Permit) -> Ended:
    """Give the quota back unless the work committed, in which case it is counted; also after a lost answer to COMMIT.

    The refusal is stored in the business database first, so a commit that comes later fails. Raises `InFlight` while
    a transaction is at work under this permit.
    """
    return end_by_marker(permit, by=EndedBy.CALLER)


def end_by_marker(permit: Permit, *, by: EndedBy) -> Ended:
    """Decide by the marker alone, and end accordingly. Raises `InFlight`."""
    if not permit.holds_quota:
        return Ended.NOTHING
    decision = decide(permit.marker, using=permit.using, patience=PATIENCE_SECONDS)
    reach("commercial.decided")
    if decision is Decision.LIVE:
        raise InFlight(InFlight.__doc__)
    wanted = ReservationState.SETTLED if decision is Decision.COMMITTED else ReservationState.RELEASED
    return end_permit(permit, wanted, by=by)


def end_permit(permit: Permit, wanted: ReservationState, *, by: EndedBy) -> Ended:
    """End the permit's generation in a transaction of its own; the caller has seen the marker."""
    key = permit.marker
    end_generation(key.subject_id, key.generation, wanted, by=by)
    return Ended(wanted.value)


def end_generation(reservation_id: uuid.UUID, generation: int, wanted: ReservationState, *, by: EndedBy) -> bool:
    """True if this call ended it, False if it had ended so before. Raises `Contradiction` if it ended otherwise."""
    if connections[ALIAS].in_atomic_block:
        raise WrongTransaction(f"A transaction is open on {ALIAS!r}: {WrongTransaction.__doc__}")
    with raw_cursor(ALIAS) as cursor:
        if wanted is ReservationState.SETTLED:
            cursor.execute(SETTLE, (by.value, reservation_id, generation))
        else:
            cursor.execute(RELEASE, (reservation_id, generation, by.value))
        if cursor.rowcount == 1:
            metrics.ended(outcome=wanted.value, source=by.value)
            return True
        cursor.execute(STANDING, (reservation_id,))
        found = cursor.fetchone()
    released = wanted is ReservationState.RELEASED
    if found and (found == (generation, wanted.value) or (released and found[0] > generation)):
        return False
    metrics.contradicted()
    log.error("quota_contradiction", reservation_id=str(reservation_id), generation=generation, wanted=wanted.value)
    raise Contradiction(f"{reservation_id}, generation {generation}: {Contradiction.__doc__}")
