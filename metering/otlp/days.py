"""The days for which events can be stored: made ahead, made when late events arrive, and refused once they are gone.

What this process knows about days is a hint that saves a question per request: an unknown day is ensured, and a day
that went meanwhile is found out by the insert itself.
"""

import time
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
AT_ONCE = 20
"""Days that one transaction makes; each is a table with its indexes."""
MAKING_SECONDS = 5.0
"""How long one request may make days; its client gives up after ten seconds."""
ALWAYS = -(2**62)
"""Before every time that a record can hold."""

NOTHING_GONE: Mapping[Kind, int] = dict.fromkeys(Kind, ALWAYS)
"""For a sink that keeps nothing."""

_known: dict[Kind, set[int]] = {kind: set() for kind in Kind}
_retained: dict[Kind, int] = {}


class Gone(Exception):
    """A day of the request is no longer kept. Transient: what is kept was read again, so decode and store again."""


class Many(Exception):
    """The request needs many days that do not exist yet. Transient: `make` them, then store again."""

    def __init__(self, kind: Kind, numbers: Iterable[int]) -> None:
        super().__init__(kind)
        self.kind = kind
        self.numbers = sorted(numbers)


class NotYet(Exception):
    """The days of the request are being made. Transient: what was made stays, so come again."""


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
    """Make the days, counted from 2000, that this process does not know to exist. Raises `Many`."""
    unknown = set(numbers) - _known[kind]
    if len(unknown) > AT_ONCE:
        raise Many(kind, unknown)
    if unknown:
        cursor.execute(ENSURE_DAYS, [kind.value, sorted(day(number) for number in unknown)])


def make(many: Many) -> None:
    """Make the days, some in a transaction, so others come between. Raises `NotYet` when this takes too long."""
    deadline = time.monotonic() + MAKING_SECONDS
    for first in range(0, len(many.numbers), AT_ONCE):
        numbers = many.numbers[first : first + AT_ONCE]
        if time.monotonic() > deadline:
            raise NotYet
        with raw_cursor(ALIAS) as cursor:
            cursor.execute(ENSURE_DAYS, [many.kind.value, [day(number) for number in numbers]])
        _known[many.kind].update(numbers)


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
