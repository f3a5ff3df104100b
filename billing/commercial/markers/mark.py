"""Leave a marker in the business transaction, look for it, and decide by it (C3, C9).

The marker is inserted before the work, so the open transaction holds its key: whoever else wants it waits, and a sweep
that waits in vain knows that somebody is at work. How it can be wrong: a server that has not noticed yet that its
client is gone holds the key for that long; then nothing is decided, and the next look decides.
"""

import uuid
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from django.db import OperationalError, connections, transaction
from uuid_utils.compat import uuid7

from billing.commercial.errors import InFlight, NoMarkers, ReservationLost, WrongTransaction
from billing.commercial.markers.models import MarkerKind, Verdict
from config.owners import Owner, owner_of_alias
from outbox.raw import raw_cursor

LOCK_NOT_AVAILABLE = "55P03"
"""SQLSTATE of a lock that was waited for in vain."""

MARK = """
INSERT INTO commercial_markers (subject_id, generation, kind, verdict) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
LOOK = "SELECT verdict FROM commercial_markers WHERE subject_id = %s AND generation = %s"
PATIENCE = "SELECT set_config('lock_timeout', %s, true)"


@dataclass(frozen=True, slots=True)
class MarkerKey:
    """Under what a marker stands."""

    subject_id: uuid.UUID
    generation: int
    kind: MarkerKind

    @classmethod
    def of_new_work(cls) -> "MarkerKey":
        """The key of one scope of a business transaction."""
        return cls.of_work(uuid7())

    @classmethod
    def of_work(cls, subject_id: uuid.UUID) -> "MarkerKey":
        """The key that a scope's `marker` gave, from the id that was written down."""
        return cls(subject_id, 1, MarkerKind.WORK)


class Decision(StrEnum):
    """What `decide` found, or brought about."""

    COMMITTED = "committed"
    """The transaction committed."""
    REFUSED = "refused"
    """It did not, and now it can not any more."""
    LIVE = "live"
    """A transaction that holds the key is still open; ask again later."""


@cache
def owner_with_markers(using: str) -> Owner:
    """The owner of this alias, which must be its own and hold markers. Raises `NoMarkers`."""
    owner = owner_of_alias(using)
    if not owner.has_markers or owner.alias != using:
        raise NoMarkers(f"{using}: {NoMarkers.__doc__}")
    return owner


def mark(key: MarkerKey, *, using: str) -> bool:
    """Insert `committed` inside the open transaction. False if another transaction committed under the key before.

    Waits for a transaction that is at work under the same key. Raises `ReservationLost` if the key was refused,
    `InFlight` if that other transaction takes too long, `WrongTransaction` outside a transaction.
    """
    if not connections[using].in_atomic_block:
        raise WrongTransaction(f"No transaction is open on {using!r}: {WrongTransaction.__doc__}")
    try:
        with raw_cursor(using) as cursor:
            cursor.execute(MARK, _row(key, Verdict.COMMITTED))
            if cursor.rowcount == 1:
                return True
            cursor.execute(LOOK, (key.subject_id, key.generation))
            found = cursor.fetchone()
    except OperationalError as error:
        if is_lock_timeout(error):
            raise InFlight(InFlight.__doc__) from error
        raise
    if found is None or found[0] != Verdict.COMMITTED:
        raise ReservationLost(ReservationLost.__doc__)
    return False


def look(key: MarkerKey, *, using: str) -> Verdict | None:
    """The verdict that is committed, None if there is none yet."""
    with raw_cursor(using) as cursor:
        cursor.execute(LOOK, (key.subject_id, key.generation))
        found = cursor.fetchone()
    return Verdict(found[0]) if found else None


def decide(key: MarkerKey, *, using: str, patience: float) -> Decision:
    """How the transaction ended; if it left no marker, it is refused here and now. Waits `patience` seconds at most.

    Raises `WrongTransaction` inside a transaction of this alias: what is decided must be committed before it is used.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        raise WrongTransaction(f"A transaction is open on {using!r}: {WrongTransaction.__doc__}")
    connection.close_if_unusable_or_obsolete()
    try:
        with transaction.atomic(using=using, durable=True), raw_cursor(using) as cursor:
            cursor.execute(PATIENCE, (f"{patience * 1000:.0f}ms",))
            cursor.execute(MARK, _row(key, Verdict.REFUSED))
            if cursor.rowcount == 1:
                return Decision.REFUSED
            cursor.execute(LOOK, (key.subject_id, key.generation))
            found = cursor.fetchone()
    except OperationalError as error:
        if is_lock_timeout(error):
            return Decision.LIVE
        raise
    return Decision(found[0]) if found else Decision.LIVE


def is_lock_timeout(error: OperationalError) -> bool:
    """Whether a statement gave up waiting for a lock."""
    return getattr(error.__cause__, "sqlstate", None) == LOCK_NOT_AVAILABLE


def _row(key: MarkerKey, verdict: Verdict) -> tuple[uuid.UUID, int, str, str]:
    return key.subject_id, key.generation, key.kind.value, verdict.value
