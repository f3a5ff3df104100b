"""Times as PostgreSQL stores them: whole microseconds since 2000 in UTC, which is also their binary form."""

from datetime import UTC, date, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
EPOCH_MICROS: Final = 946_684_800_000_000
"""The same in microseconds since 1970."""
DAY: Final = 86_400_000_000
_MICRO: Final = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """Microseconds since 2000."""
    return (at - EPOCH) // _MICRO


def moment(value: int) -> datetime:
    """The moment this many microseconds after 2000."""
    return EPOCH + value * _MICRO


def day(number: int) -> date:
    """The UTC day that begins `number` days after 2000."""
    return (EPOCH + timedelta(days=number)).date()
