"""Windows are half-open, in UTC, to the microsecond, whatever zone a sender, a session or a calendar is in (M5)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.checks import run_checks
from django.db import connections

from billing.telemetry_charges.models import StoredTelemetryCharge
from metering.consumption.models import ConsumptionWindow, WindowLength
from metering.consumption.window_length import WindowLengthChanged, ensure_window_length
from metering.otlp.start import prepare
from tests.billing.books import balances
from tests.consumption.make import (
    HOUR,
    LATER,
    MICROSECOND,
    WINDOW,
    aggregated,
    charges,
    learn,
    llm,
    receive,
    swept,
)
from tests.telemetry_charges.make import payer
from tests.verify.tamper import administrator

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.trap("M5")]
DAY = timedelta(days=1)


def counted() -> dict[datetime, int]:
    """Events by the beginning of their window, in UTC."""
    rows = ConsumptionWindow.objects.order_by("window_start").values_list("window_start", "events")
    return {start.astimezone(UTC): events for start, events in rows}


@pytest.mark.spec("T13")
@pytest.mark.parametrize("edge", [WINDOW, WINDOW.replace(hour=0), datetime(2026, 1, 1, tzinfo=UTC)])
def test_an_event_at_the_end_of_a_window_belongs_to_the_next_one(edge: datetime) -> None:
    learn(k101="org-1")
    receive(llm(edge - HOUR), llm(edge - MICROSECOND), llm(edge), llm(edge + HOUR - MICROSECOND), llm(edge + HOUR))
    swept()
    assert counted() == {edge - HOUR: 2, edge: 2, edge + HOUR: 1}
    assert [(charge.window_start, charge.input_tokens) for charge in charges()] == [
        (edge - HOUR, 200), (edge, 200), (edge + HOUR, 100),
    ]  # fmt: skip


@pytest.mark.parametrize("hours", [14, 13.75, 5.5, 0, -3.5, -12])
def test_the_zone_in_which_a_time_is_written_moves_nothing(hours: float) -> None:
    zone = timezone(timedelta(hours=hours))
    receive(*[llm(at.astimezone(zone)) for at in (WINDOW, WINDOW + HOUR - MICROSECOND, WINDOW + HOUR)])
    swept()
    assert counted() == {WINDOW: 2, WINDOW + HOUR: 1}


@pytest.mark.parametrize(
    ("day", "hours"),
    [(datetime(2026, 3, 29), 23), (datetime(2026, 10, 25), 25), (datetime(2026, 6, 1), 24)],
    ids=["clocks go forward", "clocks go back", "an ordinary day"],
)
def test_a_day_on_which_clocks_change_is_charged_hour_by_hour_and_each_hour_once(day: datetime, hours: int) -> None:
    account = payer()
    learn(k101="org-1")
    zone = ZoneInfo("Europe/Berlin")
    begin, end = (moment.replace(tzinfo=zone).astimezone(UTC) for moment in (day, day + DAY))
    every_half_hour = [begin + step * HOUR / 2 for step in range(2 * hours)]
    assert every_half_hour[-1] + HOUR / 2 == end
    receive(*[llm(at) for at in every_half_hour])
    swept(end + DAY)
    assert counted() == {begin + hour * HOUR: 2 for hour in range(hours)}
    assert StoredTelemetryCharge.objects.count() == hours
    assert balances(account)["revenue"] == 2 * hours * (100 * 150_000 + 10 * 600_000)


ZONES = ["Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu", "America/New_York"]


@pytest.fixture(params=ZONES)
def server_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """New sessions of the telemetry database begin in another zone, if their client sets none."""
    with administrator("telemetry") as server:
        name = server.info.dbname
        server.execute(f"ALTER DATABASE {name} SET timezone = '{request.param}'")
        connections["telemetry"].close()
        yield request.param
        server.execute(f"ALTER DATABASE {name} RESET timezone")
    connections["telemetry"].close()


def test_a_server_in_another_zone_finds_the_same_windows_and_lines(server_zone: str) -> None:
    learn(k101="org-1")
    receive(llm(), llm(WINDOW.replace(hour=23, minute=59)))
    swept()
    assert counted() == {WINDOW: 1, WINDOW.replace(hour=23): 1}
    assert [charge.generation for charge in charges()] == [1, 1]


@pytest.mark.parametrize("zone", ZONES)
def test_what_tells_a_line_apart_and_the_borders_of_a_window_are_the_same_in_every_session(zone: str) -> None:
    receive(llm())
    swept()
    with administrator("telemetry") as session:
        session.execute(f"SET timezone = '{zone}'")
        told = (
            "kind, cluster_id, window_start, source_mode, manager_key_id, stated_organization_id, namespace, robot_id"
        )
        same = f"line_sha256 = consumption_line_sha256({told}, cr_name, applies_to, provider)"
        assert session.execute(f"SELECT {same} FROM consumption_lines").fetchall() == [(True,)]
        session.execute(
            "INSERT INTO consumption_windows (kind, cluster_id, window_start, window_end)"
            " VALUES ('llm_billing', '7', '2026-03-04 12:00+00', '2026-03-04 13:00+00')"
        )


@pytest.mark.parametrize("seconds", [60, 900, 86_400])
def test_windows_of_any_length_that_divides_a_day_begin_at_its_multiples(seconds: int, settings: Any) -> None:
    settings.CONSUMPTION_WINDOW_SECONDS = seconds
    length = timedelta(seconds=seconds)
    begin = WINDOW.replace(hour=0)
    learn(k101="org-1")
    receive(*[llm(begin + part) for part in (MICROSECOND * 0, length - MICROSECOND, length, 2 * length - MICROSECOND)])
    swept()
    assert counted() == {begin: 2, begin + length: 2}
    assert {charge.window_end - charge.window_start for charge in charges()} == {length}


def test_the_length_is_fixed_with_the_first_window(settings: Any) -> None:
    receive(llm())
    swept()
    assert WindowLength.objects.get().seconds == 3600
    settings.CONSUMPTION_WINDOW_SECONDS = 1800
    with pytest.raises(WindowLengthChanged, match="1800 is set, 3600 is stored"):
        ensure_window_length()
    with pytest.raises(WindowLengthChanged):
        swept()
    settings.CONSUMPTION_WINDOW_SECONDS = 3600
    assert aggregated(swept()) == 0


def test_a_receiver_that_would_mark_windows_of_another_length_does_not_start(settings: Any) -> None:
    receive(llm())
    swept()
    settings.OTLP_SINK_TYPE, settings.OTLP_TS_AUTO_MIGRATE = "timescale", False
    prepare()
    settings.CONSUMPTION_WINDOW_SECONDS = 7200
    with pytest.raises(WindowLengthChanged, match="7200 is set, 3600 is stored"):
        prepare()


@pytest.mark.parametrize(("seconds", "found"), [(3600, []), (86_400, []), (7_000, ["consumption.E001"])])
def test_a_length_that_does_not_divide_a_day_is_refused_at_start(seconds: int, found: list[str], settings: Any) -> None:
    settings.CONSUMPTION_WINDOW_SECONDS = seconds
    assert [message.id for message in run_checks() if str(message.id).startswith("consumption.")] == found


def test_every_event_of_many_days_is_in_exactly_one_window() -> None:
    learn(k101="org-1")
    step = timedelta(minutes=37, seconds=11, microseconds=999_983)
    times = [WINDOW - 2 * DAY + number * step for number in range(150)]
    receive(*[llm(at, prompt_tokens=number) for number, at in enumerate(times)])
    swept(LATER + 10 * DAY)
    assert sum(counted().values()) == 150
    assert sum(charge.input_tokens for charge in charges()) == sum(range(150))
    for start, events in counted().items():
        assert events == sum(start <= at < start + HOUR for at in times)
