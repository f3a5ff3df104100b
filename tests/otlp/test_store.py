"""Storing: each event exactly once, with its windows marked and its arrival counted in the same transaction."""

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from metering.otlp import days, store
from metering.otlp.decode import Piece, Summary, decode
from metering.otlp.fields import Kind
from metering.otlp.wire import Malformed
from outbox import steps
from tests.otlp.make import ABSENT, NOON, body, llm, rules, sample
from tests.otlp.storing import TODAY, counts, forget_days, has_timescale, put, rows, stored

HOUR = timedelta(hours=1)
TALLY = "SELECT kind, accepted, stored, duplicates, conflicts FROM telemetry_tallies ORDER BY kind"
MARKS = """
SELECT kind, cluster_id, window_start, marked_generation FROM consumption_windows_dirty
 WHERE marked_generation > cleared_generation ORDER BY kind, cluster_id, window_start
"""


@pytest.mark.spec("T5", "T6")
def test_every_column_of_both_kinds_arrives(telemetry: None) -> None:
    pod: dict[str, Any] = {"k8s.pod.uid": "u"}
    put([llm("e", cached_input_tokens=3, organization_id="o", robot_id="r", cr_name="c", **pod)])
    put([sample("s", pod_name="p", container_name="k")], gateway=False)
    assert rows(
        "SELECT event_id, occurred_at, cluster_id, source_mode, tenant_name, namespace, manager_key_id, model_name,"
        " provider, organization_id, robot_id, cr_name, k8s_pod_uid, prompt_tokens, completion_tokens,"
        " cached_input_tokens FROM llm_billing_events"
    ) == [
        ("e", NOON, "7", "gateway", "team-a", "team-a", "77", "m-large", "p", "o", "r", "c", "u", 1200, 34, 3)
    ]  # fmt: skip
    assert rows(
        "SELECT event_id, occurred_at, cluster_id, source_mode, tenant_name, namespace, resource_type, utilization,"
        " above_threshold, organization_id, robot_id, cr_name, pod_name, container_name"
        " FROM resource_utilization_events"
    ) == [("s", NOON, "7", "per_cluster", "team-a", "team-a", "cpu", 0.75, True, None, None, None, "p", "k")]
    ((received,),) = rows("SELECT received_at FROM llm_billing_events")
    assert abs(received - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.spec("T6")
def test_a_resend_stores_nothing_again_however_late_it_comes(telemetry: None) -> None:
    events = [llm(f"e-{number}", at=NOON - timedelta(days=30 * number)) for number in range(5)] + [sample("s")]
    assert counts(put(events)) == (5, 0, 0)
    again = put(reversed(events))
    assert counts(again) == (0, 5, 0)
    assert counts(again, Kind.RESOURCE_UTILIZATION) == (0, 1, 0)
    assert counts(put([*events, llm("new")])) == (1, 5, 0)
    assert stored() == 6


@pytest.mark.spec("T6")
def test_one_request_may_hold_an_event_twice(telemetry: None) -> None:
    assert counts(put([llm("e"), llm("e"), llm("f")])) == (2, 1, 0)


@pytest.mark.trap("T9")
@pytest.mark.spec("T6")
def test_times_that_differ_below_a_microsecond_are_one_event(telemetry: None) -> None:
    from tests.otlp.make import nanos

    assert counts(put([llm("e", at=nanos(NOON)), llm("e", at=nanos(NOON) + 999)])) == (1, 1, 0)
    assert counts(put([llm("e", at=nanos(NOON) + 500)])) == (0, 1, 0)
    assert rows("SELECT event_id, occurred_at FROM llm_billing_events") == [("e", NOON)]


def test_a_request_of_many_pieces_is_one_transaction(telemetry: None) -> None:
    events = [llm(f"e-{number}") for number in range(4500)]
    assert counts(put(events)) == (4500, 0, 0)

    def broken() -> Iterator[Piece]:
        yield from decode(body([llm("new"), *events]), rules=rules(), summary=Summary())
        raise Malformed

    with pytest.raises(Malformed):
        store.store(broken(), cluster_id="7", mode="gateway", summary=Summary())
    assert stored() == 4500
    assert rows(TALLY) == [("llm_billing", 4500, 4500, 0, 0)]


def test_a_request_without_events_writes_nothing(telemetry: None) -> None:
    put([])
    assert rows(TALLY) == []
    assert rows(MARKS) == []


@pytest.mark.spec("T13")
def test_windows_of_new_events_are_marked_and_those_of_duplicates_are_not(telemetry: None) -> None:
    put([llm("a", at=NOON), llm("b", at=NOON + HOUR), sample("c", at=NOON)])
    top = NOON.replace(minute=0, second=0, microsecond=0)
    assert rows(MARKS) == [
        ("llm_billing", "7", top, 1), ("llm_billing", "7", top + HOUR, 1), ("resource_utilization", "7", top, 1),
    ]  # fmt: skip
    put([llm("a", at=NOON), llm("d", at=NOON + HOUR)])
    assert rows(MARKS)[:2] == [("llm_billing", "7", top, 1), ("llm_billing", "7", top + HOUR, 2)]


@pytest.mark.trap("M5")
@pytest.mark.spec("T13")
def test_windows_are_half_open_to_the_microsecond_in_utc(telemetry: None, settings: Any) -> None:
    settings.CONSUMPTION_WINDOW_SECONDS = 86_400
    midnight = datetime(2026, 3, 29, tzinfo=UTC)
    micro = timedelta(microseconds=1)
    put(
        [
            llm("last", at=midnight - micro),
            llm("first", at=midnight),
            llm("old", at=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ]
    )
    assert [start for _, _, start, _ in rows(MARKS)] == [
        datetime(1970, 1, 1, tzinfo=UTC), midnight - timedelta(days=1), midnight,
    ]  # fmt: skip


def test_what_arrived_is_counted_with_what_became_of_it(telemetry: None) -> None:
    put([llm("a"), llm("b")])
    put([llm("a"), llm("b", provider="q"), llm("c"), sample("s")])
    put([llm("a")], cluster="8")
    found = rows(
        "SELECT cluster_id, kind, accepted, stored, duplicates, conflicts FROM telemetry_tallies ORDER BY 1, 2"
    )
    assert found == [
        ("7", "llm_billing", 5, 3, 1, 1), ("7", "resource_utilization", 1, 1, 0, 0), ("8", "llm_billing", 1, 0, 0, 1),
    ]  # fmt: skip


@pytest.mark.spec("T7")
def test_dropped_records_are_counted_per_cluster_kind_and_reason(telemetry: None) -> None:
    for _ in range(2):
        put([llm("a"), llm("x", at=None), llm("y", at=None), sample("z", utilization=-1), llm("w", event_type="?")])
    put([llm("v", manager_key_id=ABSENT)], cluster="8")
    found = rows("SELECT cluster_id, kind, reason, dropped, last_event_id FROM telemetry_drops ORDER BY 1, 2, 3")
    assert found == [
        ("7", "llm_billing", "occurred_at", 4, "y"),
        ("7", "resource_utilization", "utilization", 2, "z"),
        ("7", "unknown", "event_type", 2, "w"),
        ("8", "llm_billing", "manager_key_id", 1, "v"),
    ]


@pytest.mark.spec("T10")
def test_late_events_get_the_days_they_need(telemetry: None) -> None:
    days_of = ["2021-06-01T23:59", "2021-06-02", "1999-01-01", "1971-01-01", "2019-12-31T23:59:59", "2020-01-01"]
    late = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in days_of]
    events = [llm(f"e-{number}", at=at) for number, at in enumerate(late)]
    assert counts(put(events)) == (6, 0, 0)
    assert counts(put(events)) == (0, 6, 0)
    forget_days()
    assert counts(put(events)) == (0, 6, 0)


@pytest.mark.spec("T10")
def test_days_are_made_ahead_once(telemetry: None) -> None:
    days.ensure_ahead(TODAY.date(), ahead=3)
    assert days.ensure_ahead(TODAY.date(), ahead=3) == 0
    if has_timescale():
        pytest.skip("chunks make themselves")
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("SELECT ends FROM telemetry_days('llm_billing')")
        ends = {row[0] for row in cursor.fetchall()}
    assert {TODAY.date() + timedelta(days=number + 1) for number in range(4)} <= ends


def test_days_far_ahead_are_not_made(telemetry: None) -> None:
    with connections["telemetry"].cursor() as cursor:
        cursor.execute("SELECT telemetry_ensure_days('llm_billing', %s)", [[date(2100, 1, 1)]])
        assert cursor.fetchone() == (0,)
    if has_timescale():
        pytest.skip("chunks make themselves")
    with pytest.raises(days.Gone):
        put([llm(at=datetime(2100, 1, 1, tzinfo=UTC))])
    assert stored() == 0


def threads(*works: Any) -> list[Any]:
    """Run all at once, each on connections of its own; what each returned or raised."""
    found: list[Any] = [None] * len(works)
    start = threading.Barrier(len(works))

    def run(number: int) -> None:
        start.wait()
        try:
            found[number] = works[number]()
        except Exception as error:
            found[number] = error
        finally:
            connections["telemetry"].close()

    running = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return found


@pytest.mark.trap("T13")
@pytest.mark.spec("T6")
def test_parallel_requests_of_new_and_known_events_store_each_once_without_an_error(telemetry: None) -> None:
    events = [llm(f"e-{number}", at=TODAY + timedelta(seconds=number)) for number in range(400)]
    mixed = [*events, *(sample(f"s-{number}", at=TODAY) for number in range(100))]
    put(events[:50])
    orders = [mixed, mixed[::-1], mixed[200:] + mixed[:200], mixed[::2] + mixed[1::2]] * 2
    done = threads(*(lambda order=order: put(order) for order in orders))
    total: Counter[str] = Counter()
    for outcome in done:
        assert isinstance(outcome, store.Outcome), outcome
        total["stored"] += outcome.stored.total()
        total["known"] += outcome.duplicates.total()
    assert total == {"stored": 450, "known": 8 * 500 - 450}
    assert (stored(), stored("resource_utilization_events")) == (400, 100)
    ((accepted, new),) = rows("SELECT sum(accepted), sum(stored) FROM telemetry_tallies")
    assert (accepted, new) == (50 + 8 * 500, 500)


@pytest.mark.trap("T13")
def test_parallel_requests_make_one_late_day_together(telemetry: None) -> None:
    at = datetime(2022, 8, 8, 8, tzinfo=UTC)
    done = threads(*(lambda number=number: put([llm(f"e-{number}", at=at)]) for number in range(8)))
    assert [counts(outcome) for outcome in done] == [(1, 0, 0)] * 8


@pytest.mark.trap("T4")
def test_a_second_request_waits_for_the_first_and_finds_its_events(telemetry: None) -> None:
    first = [llm(f"e-{number}") for number in range(20)]
    put([])
    inserted, go_on = threading.Event(), threading.Event()

    def hook(step: str) -> None:
        if step == "otlp.inserted" and threading.current_thread().name == "first":
            inserted.set()
            assert go_on.wait(10)

    steps.hook = hook
    try:
        outcomes: dict[str, Any] = {}

        def run(name: str) -> None:
            outcomes[name] = put(first)
            connections["telemetry"].close()

        one = threading.Thread(target=run, args=("first",), name="first")
        other = threading.Thread(target=run, args=("second",), name="second")
        one.start()
        assert inserted.wait(10)
        other.start()
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        while not rows(waiting, alias="telemetry")[0][0]:
            other.join(0.01)
        go_on.set()
        one.join()
        other.join()
    finally:
        steps.hook = None
    assert [counts(outcomes[name]) for name in ("first", "second")] == [(20, 0, 0), (0, 20, 0)]


def test_a_transaction_that_fails_at_its_end_leaves_nothing(telemetry: None) -> None:
    def hook(step: str) -> None:
        if step == "otlp.inserted":
            raise DatabaseError("made up")

    steps.hook = hook
    try:
        with pytest.raises(DatabaseError, match="made up"):
            put([llm("e"), sample("s"), llm("x", at=None)])
    finally:
        steps.hook = None
    assert stored() == stored("resource_utilization_events") == 0
    assert rows(TALLY) == rows(MARKS) == rows("SELECT * FROM telemetry_drops") == []
    assert counts(put([llm("e")])) == (1, 0, 0)


def test_staging_survives_a_session_that_was_killed(telemetry: None) -> None:
    put([llm("a")])
    connections["telemetry"].ensure_connection()
    killed = connections["telemetry"].connection.info.backend_pid
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [killed])
    connections["telemetry"].close()
    assert counts(put([llm("b")])) == (1, 0, 0)


def test_behind_a_pooler_each_transaction_makes_its_staging(telemetry: None) -> None:
    wrapper = connections["telemetry"]
    wrapper.close()
    wrapper.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = True
    try:
        assert counts(put([llm("a"), sample("b")])) == (1, 0, 0)
        assert counts(put([llm("a"), llm("c")])) == (1, 1, 0)
        with transaction.atomic(using="telemetry"):
            assert stored() == 2
    finally:
        wrapper.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = False
        wrapper.close()
