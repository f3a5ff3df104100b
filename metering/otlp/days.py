"""The days for which events can be stored: made ahead, made when late events arrive, and refused once they are gone.

What this process knows about days is a hint that saves a question per request: an unknown day is ensured, and a day
that went meanwhile is found out by the insert itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta

from psycopg.errors import CheckViolation

from config.owners import owner_named
from metering.otlp.fields import Kind
from metering.otlp.statements import ENSURE_DAYS, RETAINED
from metering.otlp.times import DAY, day, micros
from outbox.raw import Cursor, raw_cursor

ALIAS = owner_named("telemetry").alias
ALWAYS = -(2**62)
"""Before every time that a record can hold."""

NOTHING_GONE: Mapping[Kind, int] = dict.fromkeys(Kind, ALWAYS)
"""For a sink that keeps nothing."""

_known: dict[Kind, set[int]] = {kind: set() for kind in Kind}
_retained: dict[Kind, int] = {}


class Gone(Exception):
    """A day of the request is no longer kept. Transient: what is kept was read again, so decode and store again."""


def earliest() -> Mapping[Kind, int]:
    """The first moment of each kind that is kept, in microseconds since 2000. Raises Django's database errors."""
    if not _retained:
        refresh()
    return _retained


def refresh() -> None:
    """Ask the database what is kept, and forget which days exist."""
    with raw_cursor(ALIAS) as cursor:
        found = dict(cursor.execute(RETAINED).fetchall())
    for kind in Kind:
        _retained[kind] = micros(found[kind.value]) if kind.value in found else ALWAYS
        _known[kind] = set()


def ensure(cursor: Cursor, kind: Kind, numbers: Iterable[int]) -> None:
    """Make the days, counted from 2000, that this process does not know to exist."""
    unknown = set(numbers) - _known[kind]
    if unknown:
        cursor.execute(ENSURE_DAYS, [kind.value, sorted(day(number) for number in unknown)])


def remember(staged: Mapping[Kind, Iterable[int]]) -> None:
    """These days exist: the transaction that needed them has committed."""
    for kind, numbers in staged.items():
        _known[kind].update(numbers)


def ensure_ahead(today: date, *, ahead: int) -> int:
    """Make today and the next `ahead` days of both kinds; returns how many were made."""
    wanted = [today + timedelta(days=number) for number in range(ahead + 1)]
    made = 0
    with raw_cursor(ALIAS) as cursor:
        for kind in Kind:
            made += cursor.execute(ENSURE_DAYS, [kind.value, wanted]).fetchone()[0]  # type: ignore[index]  # one row
    return made


def check_retained(kind: Kind, numbers: Iterable[int], retained_from: datetime | None) -> None:
    """Raise `Gone` if a day lies before what is kept; hypertables would make it again."""
    if retained_from is not None and min(numbers) * DAY < micros(retained_from):
        raise Gone


@contextmanager
def missing_is_gone() -> Iterator[None]:
    """Around an insert by psycopg: no partition takes a row whose day was known or ensured, so its day went."""
    try:
        yield
    except CheckViolation as error:
        if error.diag.constraint_name is None:
            raise Gone from error
        raise
