"""What contradicts the store: kept with all it said, counted, logged, billed nowhere."""

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction
from structlog.testing import capture_logs

from metering.otlp import identify
from metering.otlp.fields import Kind
from metering.otlp.identify import scan
from metering.otlp.store import Clash
from tests.otlp.make import NOON, llm, sample
from tests.otlp.storing import counts, put, rows, stored

HOUR = timedelta(hours=1)
CONFLICTS = """
SELECT kind, reason, event_id, cluster_id, standing_cluster_id, fields, arrivals FROM telemetry_conflicts
 ORDER BY conflict_id
"""
CONSUMABLE = "SELECT event_id, occurred_at FROM consumable_llm_billing_events ORDER BY 2, 1"


@pytest.mark.spec("T6")
def test_a_duplicate_with_other_content_is_a_conflict_and_what_is_stored_stands(telemetry: None) -> None:
    put([llm("e", prompt_tokens=1)])
    outcome = put([llm("e", prompt_tokens=2, provider="q"), llm("new")])
    assert counts(outcome) == (1, 0, 1)
    assert outcome.clashes == [Clash(Kind.LLM_BILLING, "e", "content", "provider,prompt_tokens", 1)]
    assert rows(CONFLICTS) == [("llm_billing", "content", "e", "7", "7", "provider,prompt_tokens", 1)]
    assert rows("SELECT prompt_tokens, provider FROM llm_billing_events WHERE event_id = 'e'") == [(1, "p")]
    ((arrived, digest),) = rows("SELECT arrived, arrived_sha256 FROM telemetry_conflicts")
    said = json.loads(arrived)
    assert (said["prompt_tokens"], said["provider"], said["cluster_id"], said["cr_name"]) == (2, "q", "7", None)
    assert digest == hashlib.sha256(arrived.encode()).hexdigest()


@pytest.mark.spec("T6")
def test_a_duplicate_of_another_cluster_is_a_conflict_even_with_equal_content(telemetry: None) -> None:
    put([llm("e")])
    assert counts(put([llm("e")], cluster="8")) == (0, 0, 1)
    assert rows(CONFLICTS) == [("llm_billing", "cluster", "e", "8", "7", "cluster_id", 1)]
    assert rows("SELECT cluster_id FROM llm_billing_events") == [("7",)]


@pytest.mark.spec("T6")
def test_a_value_against_none_is_a_conflict_and_the_mode_of_the_token_is_none(telemetry: None) -> None:
    put([llm("e", organization_id="o"), llm("f")])
    assert counts(put([llm("e"), llm("f")], gateway=False)) == (0, 1, 1)
    assert [row[5] for row in rows(CONFLICTS)] == ["organization_id"]


@pytest.mark.spec("T6")
def test_a_conflict_that_comes_again_is_counted_in_its_row_and_another_one_has_its_own(telemetry: None) -> None:
    put([sample("s", utilization=0.5)])
    for _ in range(3):
        put([sample("s", utilization=0.6), sample("s", utilization=0.6)])
    put([sample("s", utilization=0.7)])
    assert [(row[5], row[6]) for row in rows(CONFLICTS)] == [("utilization", 6), ("utilization", 1)]
    assert rows("SELECT accepted, stored, duplicates, conflicts FROM telemetry_tallies") == [(8, 1, 0, 7)]


@pytest.mark.spec("T6")
def test_two_contents_of_one_key_in_one_request_store_the_first_and_tell_the_second(telemetry: None) -> None:
    assert counts(put([llm("e", prompt_tokens=1), llm("e", prompt_tokens=2), llm("e", prompt_tokens=1)])) == (1, 1, 1)
    assert rows("SELECT prompt_tokens FROM llm_billing_events") == [(1,)]
    assert len(rows(CONFLICTS)) == 1


@pytest.mark.spec("T6")
def test_equal_ids_of_the_two_kinds_are_no_conflict(telemetry: None) -> None:
    outcome = put([llm("same"), sample("same")])
    assert outcome.stored.total() == 2
    assert (scan(Kind.LLM_BILLING, seconds=60), scan(Kind.RESOURCE_UTILIZATION, seconds=60)) == (0, 0)
    assert rows(CONFLICTS) == []


@pytest.mark.spec("T6")
def test_an_event_id_under_two_times_is_consumed_once_and_becomes_a_conflict(telemetry: None) -> None:
    put([llm("e", at=NOON), llm("other", at=NOON)])
    put([llm("e", at=NOON + 40 * timedelta(days=1))])
    put([llm("e", at=NOON - HOUR), llm("e", at=NOON)])
    assert stored() == 4
    with capture_logs() as lines:
        assert scan(Kind.LLM_BILLING, seconds=60) == 2
    assert rows(CONSUMABLE) == [("e", NOON), ("other", NOON)]
    told = [line for line in lines if line["event"] == "otlp_conflict"]
    assert [(line["event_id"], line["reason"], line["fields"]) for line in told] == [
        ("e", "two_times", "occurred_at")
    ] * 2
    found = rows(
        "SELECT occurred_at, standing_occurred_at FROM telemetry_conflicts WHERE reason = 'two_times' ORDER BY 1"
    )
    assert found == [(NOON - HOUR, NOON), (NOON + 40 * timedelta(days=1), NOON)]


@pytest.mark.spec("T6")
def test_the_event_that_stands_is_the_one_received_first_and_within_one_request_the_earlier_one(
    telemetry: None,
) -> None:
    put([llm("a", at=NOON + HOUR), llm("a", at=NOON)])
    put([llm("b", at=NOON + HOUR)])
    put([llm("b", at=NOON)])
    scan(Kind.LLM_BILLING, seconds=60)
    assert rows(CONSUMABLE) == [("a", NOON), ("b", NOON + HOUR)]


@pytest.mark.spec("T6", "T13")
def test_the_window_of_an_excluded_event_is_marked_again_and_no_other(telemetry: None) -> None:
    put([llm("e", at=NOON)])
    put([llm("e", at=NOON + 5 * HOUR)], cluster="8")
    with connections["telemetry"].cursor() as cursor:
        cursor.execute("UPDATE consumption_windows_dirty SET cleared_generation = marked_generation")
    scan(Kind.LLM_BILLING, seconds=60)
    dirty = rows(
        "SELECT cluster_id, window_start, marked_generation FROM consumption_windows_dirty"
        " WHERE marked_generation > cleared_generation"
    )
    assert dirty == [("8", (NOON + 5 * HOUR).replace(minute=0, second=0, microsecond=0), 2)]
    assert rows("SELECT fields FROM telemetry_conflicts") == [("occurred_at,cluster_id",)]


@pytest.mark.spec("T6")
def test_scanning_again_finds_nothing_twice(telemetry: None) -> None:
    put([llm("e", at=NOON)])
    put([llm("e", at=NOON + HOUR)])
    assert [scan(Kind.LLM_BILLING, seconds=60) for _ in range(3)] == [1, 0, 0]
    put([llm("e", at=NOON + HOUR), llm("e", at=NOON + 2 * HOUR)])
    assert [scan(Kind.LLM_BILLING, seconds=60) for _ in range(2)] == [1, 0]
    assert rows("SELECT arrivals FROM telemetry_conflicts") == [(1,), (1,)]
    assert len(rows("SELECT * FROM telemetry_event_identities")) == 1


@pytest.mark.spec("T6")
def test_a_scan_stops_before_what_an_open_transaction_may_still_store(telemetry: None) -> None:
    put([llm("e", at=NOON)])
    late = connections.create_connection("telemetry")
    try:
        with late.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT now()")
            put([llm("e", at=NOON + HOUR)])
            assert scan(Kind.LLM_BILLING, seconds=60) == 0
            cursor.execute("SELECT count(*) FROM llm_billing_events")
            cursor.execute("COMMIT")
        assert scan(Kind.LLM_BILLING, seconds=60) == 1
    finally:
        late.close()


@pytest.mark.trap("D15")
def test_a_second_scan_at_the_same_time_leaves_the_work_to_the_first(telemetry: None) -> None:
    put([llm("e", at=NOON)])
    scan(Kind.LLM_BILLING, seconds=60)
    put([llm("e", at=NOON + HOUR)])
    other = connections.create_connection("telemetry")
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT FROM telemetry_identity_scans WHERE kind = 'llm_billing' FOR UPDATE")
            assert scan(Kind.LLM_BILLING, seconds=60) == 0
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert scan(Kind.LLM_BILLING, seconds=60) == 1


def test_a_scan_goes_step_by_step_through_what_was_received(telemetry: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identify, "STEP", timedelta(microseconds=1))
    for number in range(5):
        put([llm("e", at=NOON + number * HOUR)])
    assert scan(Kind.LLM_BILLING, seconds=0) == 0
    assert scan(Kind.LLM_BILLING, seconds=60) == 4
    ((lag,),) = rows("SELECT now() - scanned_until FROM telemetry_identity_scans WHERE kind = 'llm_billing'")
    assert lag < timedelta(minutes=1)


@pytest.mark.parametrize("alias", ["telemetry", "telemetry.read", "telemetry.schema"])
def test_no_login_can_take_a_conflict_away(telemetry: None, alias: str) -> None:
    put([llm("e")])
    put([llm("e", provider="q")])
    for statement in (
        "DELETE FROM telemetry_conflicts",
        "TRUNCATE telemetry_conflicts",
        "UPDATE telemetry_conflicts SET reason = 'cluster', arrivals = arrivals + 1",
        "UPDATE telemetry_conflicts SET arrivals = arrivals - 1",
    ):
        with pytest.raises(Exception, match=r"permission denied|never|only the count"), transaction.atomic(using=alias):
            refused(alias, statement)
    assert len(rows(CONFLICTS)) == 1


def refused(alias: str, statement: str) -> Any:
    with connections[alias].cursor() as cursor:
        return cursor.execute(statement)
