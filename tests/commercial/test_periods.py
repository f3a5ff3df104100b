"""The calendar of periods, against one of our own with Python's time zones (M5)."""

import random
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connections

from billing.commercial import hooks
from tests.commercial.make import AT, BUSINESS, operation, rows, subscribe

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.trap("M5"), pytest.mark.spec("C1")]

ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "America/Havana", "Asia/Beirut", "Africa/Cairo", "America/Sao_Paulo",
    "Australia/Lord_Howe", "Asia/Kathmandu", "Asia/Tehran", "Pacific/Kiritimati", "Pacific/Apia", "Etc/GMT+12",
)  # fmt: skip
"""UTC+14 to UTC−12, clocks that change at midnight, by half an hour, and a day that one island never had."""
MONTHS = {"month": 1, "year": 12}
STEPS = {"day": 2**13, "month": 2**8, "year": 2**4}
US = timedelta(microseconds=1)
PERIOD = "SELECT starts_at, ends_at FROM commercial_period(%s, %s, %s, %s)"


def period(anchor: datetime, zone: str, unit: str, at: datetime) -> tuple[datetime, datetime]:
    """What the database says."""
    starts, ends = rows(PERIOD, anchor, zone, unit, at, alias="billing.schema")[0]
    return starts, ends


def moment(wall: datetime, zone: str) -> datetime:
    """The moment of a wall time, by the database's rule: the first of two, and the clock of before in a skip."""
    return wall.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)


def boundary(anchor: datetime, zone: str, unit: str, n: int) -> datetime:
    if n == 0:
        return anchor
    wall = anchor.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if unit == "day":
        return moment(wall + timedelta(days=n), zone)
    year, month = divmod(wall.year * 12 + wall.month - 1 + n * MONTHS[unit], 12)
    return moment(wall.replace(year=year, month=month + 1, day=min(wall.day, monthrange(year, month + 1)[1])), zone)


def ours(anchor: datetime, zone: str, unit: str, at: datetime) -> tuple[datetime, datetime]:
    """The period by Python's calendar."""
    n = 0
    step = STEPS[unit]
    while step:
        if boundary(anchor, zone, unit, n + step) <= at:
            n += step
        else:
            step //= 2
    return boundary(anchor, zone, unit, n), boundary(anchor, zone, unit, n + 1)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["day", "month", "year"])
def test_every_moment_belongs_to_exactly_one_period(zone: str, unit: str) -> None:
    chosen = random.Random(f"{zone} {unit}")
    for _ in range(12):
        anchor = moment(datetime(2008, 1, 1) + timedelta(days=chosen.randrange(2000)), zone)
        at = anchor + timedelta(microseconds=chosen.randrange(9 * 365 * 86_400 * 10**6))
        starts, ends = period(anchor, zone, unit, at)
        assert starts <= at < ends
        assert (starts, ends) == ours(anchor, zone, unit, at)
        assert period(anchor, zone, unit, starts) == (starts, ends)
        assert period(anchor, zone, unit, ends - US) == (starts, ends)
        assert period(anchor, zone, unit, ends)[0] == ends
        if starts > anchor:
            assert period(anchor, zone, unit, starts - US)[1] == starts


@pytest.mark.parametrize(
    ("zone", "unit", "at", "starts", "ends"),
    [
        ("Pacific/Kiritimati", "month", "2026-06-30T10:00:00", "2026-06-30T10:00:00", "2026-07-31T10:00:00"),
        ("Etc/GMT+12", "month", "2026-07-01T11:59:59.999999", "2026-06-01T12:00:00", "2026-07-01T12:00:00"),
        ("Europe/Berlin", "day", "2026-03-29T12:00:00", "2026-03-28T23:00:00", "2026-03-29T22:00:00"),
        ("Europe/Berlin", "day", "2026-10-25T12:00:00", "2026-10-24T22:00:00", "2026-10-25T23:00:00"),
        ("America/Havana", "day", "2024-11-03T04:00:00", "2024-11-03T04:00:00", "2024-11-04T05:00:00"),
        ("America/Sao_Paulo", "day", "2017-10-15T03:00:00", "2017-10-15T03:00:00", "2017-10-16T02:00:00"),
        ("Pacific/Apia", "day", "2011-12-30T10:00:00", "2011-12-30T10:00:00", "2011-12-31T10:00:00"),
    ],
    ids=["UTC+14", "UTC-12", "a day of 23 h", "a day of 25 h", "midnight twice", "no midnight", "a day that was not"],
)
def test_days_and_months_that_are_unlike_others(zone: str, unit: str, at: str, starts: str, ends: str) -> None:
    anchor = moment(datetime(2010, 1, 1), zone)
    found = period(anchor, zone, unit, datetime.fromisoformat(at).replace(tzinfo=UTC))
    assert found == tuple(datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (starts, ends))


def test_a_month_that_begins_on_the_31st_ends_on_the_last_day_of_shorter_ones_and_comes_back() -> None:
    anchor = datetime(2026, 1, 31, tzinfo=UTC)
    ends = [period(anchor, "UTC", "month", datetime(2026, month, 28, 12, tzinfo=UTC))[1].day for month in range(2, 8)]
    assert ends == [31, 31, 30, 31, 30, 31]
    leap = datetime(2024, 2, 29, tzinfo=UTC)
    days = [period(leap, "UTC", "year", datetime(year, 7, 1, tzinfo=UTC))[1].date() for year in (2024, 2026, 2027)]
    assert days == [date(2025, 2, 28), date(2027, 2, 28), date(2028, 2, 29)]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Havana", "Etc/GMT+12"])
def test_an_operation_at_the_last_microsecond_counts_in_the_old_period_and_one_later_in_the_new_one(zone: str) -> None:
    contract = subscribe(limit=1, zone=zone)
    end = moment(datetime(2026, 8, 1), zone)
    for at in (end - US, end):
        assert hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=at).holds_quota
        with pytest.raises(hooks.QuotaExceeded):
            hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=at)
    opened = rows("SELECT starts_at, ends_at FROM commercial_entitlement_periods ORDER BY starts_at")
    assert [ends for _, ends in opened[:-1]] == [starts for starts, _ in opened[1:]] == [end]


def test_what_the_calendar_once_said_stays_when_it_says_something_else_later() -> None:
    contract = subscribe(limit=1)
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    with connections["billing.schema"].cursor() as cursor:
        cursor.execute("ALTER TABLE commercial_entitlement_periods DISABLE TRIGGER USER")
        cursor.execute("UPDATE commercial_entitlement_periods SET ends_at = ends_at + interval '1 hour'")
        cursor.execute("ALTER TABLE commercial_entitlement_periods ENABLE TRIGGER USER")
    moved = datetime(2026, 8, 1, 1, tzinfo=UTC)
    with pytest.raises(hooks.QuotaExceeded):
        hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=moved - US)
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=moved)
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=datetime(2026, 6, 30, tzinfo=UTC))
    opened = rows("SELECT starts_at, ends_at FROM commercial_entitlement_periods ORDER BY starts_at")
    assert opened == [
        (datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)),
        (datetime(2026, 7, 1, tzinfo=UTC), moved),
        (moved, datetime(2026, 9, 1, tzinfo=UTC)),
    ]


def test_a_period_never_reaches_beyond_its_subscription() -> None:
    contract = subscribe(starts_on="2026-07-10", ends_on="2026-07-20")
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    assert rows("SELECT starts_at, ends_at FROM commercial_entitlement_periods") == [
        (datetime(2026, 7, 10, tzinfo=UTC), datetime(2026, 7, 20, tzinfo=UTC))
    ]
