"""Retention by whole days: what goes is counted, never stored again, and never goes before it was consumed."""

import uuid
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connections

from metering.clusters.authenticate import Authenticated
from metering.clusters.models import Mode, Sink
from metering.otlp import days
from metering.otlp.expire import expire
from metering.otlp.fields import Kind
from metering.otlp.identify import scan
from metering.otlp.receive import Request, receive
from metering.otlp.times import micros
from tests.otlp.make import body, llm, rules, sample
from tests.otlp.reading import fate
from tests.otlp.storing import TODAY, counts, forget_days, has_timescale, put, rows, stored

DAY = timedelta(days=1)
OLD = TODAY - 60 * DAY
OLDER = TODAY - 61 * DAY
AGGREGATED = "UPDATE consumption_windows_dirty SET cleared_generation = marked_generation"


def aggregate_all() -> None:
    """As if consumption had done its work."""
    with connections["telemetry"].cursor() as cursor:
        cursor.execute(AGGREGATED)


@pytest.mark.spec("T10")
def test_whole_days_go_with_all_their_events_and_are_counted(telemetry: None) -> None:
    put([llm("a", at=OLDER), llm("b", at=OLD), llm("c", at=TODAY), llm("late", at=datetime(1999, 1, 1, tzinfo=UTC))])
    put([llm("d", at=OLD), sample("s", at=OLD)], cluster="8")
    scan(Kind.LLM_BILLING, seconds=60)
    aggregate_all()
    assert expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40) >= 3
    assert rows("SELECT event_id FROM llm_billing_events") == [("c",)]
    assert stored("resource_utilization_events") == 1
    assert rows("SELECT cluster_id, day, events FROM telemetry_expired_days ORDER BY day, cluster_id") == [
        ("7", date(1999, 1, 1) if has_timescale() else date(2019, 12, 31), 1), ("7", OLDER.date(), 1),
        ("7", OLD.date(), 1), ("8", OLD.date(), 1),
    ]  # fmt: skip
    assert rows("SELECT event_id FROM telemetry_event_identities") == [("c",)]
    assert expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40) == 0


@pytest.mark.spec("T10")
@pytest.mark.trap("D25")
def test_what_is_gone_is_refused_when_it_comes_again_never_stored_twice(telemetry: None) -> None:
    put([llm("a", at=OLD)])
    aggregate_all()
    expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40)
    with pytest.raises(days.Gone):
        put([llm("a", at=OLD)])
    days.refresh()
    kept = rules(earliest=days.earliest()[Kind.LLM_BILLING])
    assert days.earliest()[Kind.LLM_BILLING] > micros(OLD)
    assert fate(llm("a", at=OLD), held_to=kept) == "occurred_at"
    assert isinstance(fate(llm("a", at=TODAY), held_to=kept), dict)
    forget_days()
    with pytest.raises(days.Gone):
        put([llm("a", at=OLD)])
    assert stored() == 0


@pytest.mark.spec("T10", "T13")
def test_a_day_stays_until_consumption_has_aggregated_it_and_so_do_all_after_it(telemetry: None) -> None:
    put([llm("a", at=OLDER), llm("b", at=OLD)])
    assert expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40) == 0
    aggregate_all()
    put([llm("c", at=OLD)])
    expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40)
    assert rows("SELECT event_id FROM llm_billing_events ORDER BY 1") == [("b",), ("c",)]


@pytest.mark.spec("T10")
def test_the_last_35_days_stay_whatever_is_asked(telemetry: None) -> None:
    put([llm("a", at=TODAY - 34 * DAY), llm("b", at=TODAY - 37 * DAY)])
    aggregate_all()
    expire(Kind.LLM_BILLING, today=TODAY.date() + 400 * DAY, keep_days=0)
    assert rows("SELECT event_id FROM llm_billing_events") == [("a",)]


@pytest.mark.spec("T10")
def test_retention_never_moves_back_and_nobody_moves_it_by_hand(telemetry: None) -> None:
    put([llm("a", at=OLD)])
    aggregate_all()
    expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40)
    for alias in ("telemetry", "telemetry.read", "telemetry.schema"):
        for statement in (
            "UPDATE telemetry_retention SET retained_from = '2020-01-01'",
            "DELETE FROM telemetry_retention",
            "TRUNCATE telemetry_retention",
            "DELETE FROM telemetry_expired_days",
            "UPDATE telemetry_expired_days SET events = 1",
        ):
            refused = pytest.raises(Exception, match=r"permission denied|stays gone|moves forward|counted once")
            with refused, connections[alias].cursor() as cursor:
                cursor.execute(statement)
            connections[alias].close()
    for statement in (
        "INSERT INTO telemetry_retention VALUES ('resource_utilization', now())",
        "INSERT INTO telemetry_expired_days (kind, cluster_id, day, events) VALUES ('llm_billing', '7', now(), 1)",
    ):
        with pytest.raises(Exception, match="permission denied"), connections["telemetry"].cursor() as cursor:
            cursor.execute(statement)
        connections["telemetry"].close()


def test_an_event_that_is_being_stored_is_counted_before_its_day_goes(telemetry: None) -> None:
    put([llm("a", at=OLD)])
    aggregate_all()
    other = connections.create_connection("telemetry")
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(
                "INSERT INTO llm_billing_events (event_id, occurred_at, cluster_id, source_mode, tenant_name,"
                " namespace, model_name, provider, prompt_tokens, completion_tokens) VALUES"
                " ('b', %s, '7', 'per_cluster', 't', 'n', 'm', 'p', 1, 1)",
                [OLD],
            )
            assert expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40) == 0
            cursor.execute("COMMIT")
    finally:
        other.close()
    assert expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40) >= 1
    assert rows("SELECT sum(events) FROM telemetry_expired_days") == [(2,)]


def test_a_resend_of_a_kept_day_is_still_a_duplicate_after_others_went(telemetry: None) -> None:
    put([llm("a", at=OLD), llm("b", at=TODAY)])
    aggregate_all()
    expire(Kind.LLM_BILLING, today=TODAY.date(), keep_days=40)
    assert counts(put([llm("b", at=TODAY)])) == (0, 1, 0)


@pytest.mark.spec("T10")
def test_a_request_over_very_many_days_makes_them_some_at_a_time(
    telemetry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 2 * days.AT_ONCE + 5
    sent = Request(
        body=body([llm(f"event {day}", at=TODAY - (200 + day) * DAY) for day in range(number)]),
        is_gzip=False,
        is_json=False,
        who=Authenticated(cluster_id=7, token_id=uuid.uuid4(), mode=Mode.GATEWAY, sink=Sink.TIMESCALE),
        received_at=TODAY,
    )
    forget_days()
    monkeypatch.setattr(days, "MAKING_SECONDS", -1.0)
    with pytest.raises(days.NotYet):
        receive(sent)
    assert stored() == 0
    monkeypatch.undo()
    assert receive(sent).accepted.total() == stored() == number
