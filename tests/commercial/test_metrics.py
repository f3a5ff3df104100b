"""What the commercial boundary counts and shows: the contract of names and labels, and that the numbers are true."""

import pytest
from django.test import Client

from billing.commercial import gauges, hooks, metrics
from billing.commercial.hooks import QuotaExceeded
from billing.commercial.models import EndedBy, ReservationState
from billing.commercial.reserve import MISCONFIGURED, PERMITTED
from tests.commercial.conftest import swept_now
from tests.commercial.make import AT, BUSINESS, operation, subscribe
from tests.commercial.notes import write_note
from tests.observability.test_metrics import counted, scraped

pytestmark = [pytest.mark.usefixtures("business"), pytest.mark.spec("O33", "C3")]


def test_the_contract_is_this_list() -> None:
    assert {(metric.name, str(metric.kind), metric.labels) for metric in (*metrics.METRICS, *gauges.GAUGES)} == {
        ("commercial_decisions_total", "counter", ("outcome",)),
        ("commercial_ended_total", "counter", ("outcome", "source")),
        ("commercial_callbacks_failed_total", "counter", ("phase",)),
        ("commercial_outcomes_unknown_total", "counter", ()),
        ("commercial_contradictions_total", "counter", ()),
        ("commercial_swept_total", "counter", ("business", "outcome")),
        ("commercial_last_sweep_timestamp_seconds", "gauge", ("business",)),
        ("commercial_held_reservations", "gauge", ("business",)),
        ("commercial_oldest_held_seconds", "gauge", ("business",)),
    }
    assert set(metrics.SOURCES) == set(EndedBy.values)
    assert set(metrics.ENDS) == set(ReservationState.values) - {"reserved"}


def test_every_answer_of_the_database_is_counted_under_its_own_name() -> None:
    own = {"exceeded", "conflicting", "unavailable", "unknown_cost"}
    assert set(metrics.DECISIONS) == set(PERMITTED) | set(MISCONFIGURED) | own
    shown = {dict(labels)["outcome"] for labels in counted("commercial_decisions_total")}
    assert shown == set(metrics.DECISIONS), "every series is there from the start"


def decisions() -> dict[str, float]:
    return {dict(labels)["outcome"]: value for labels, value in counted("commercial_decisions_total").items()}


def test_decisions_and_ends_are_counted_once() -> None:
    before = decisions()
    contract = subscribe(limit=1)
    write_note(contract, "a", "text", request="r")
    write_note(contract, "a", "text", request="r")
    write_note(None, "b", "text")
    with pytest.raises(QuotaExceeded):
        write_note(contract, "c", "text")
    grown = {outcome: value - before[outcome] for outcome, value in decisions().items()}
    assert {outcome: count for outcome, count in grown.items() if count} == {
        "reserved": 1, "settled": 1, "unmetered": 1, "exceeded": 1,
    }  # fmt: skip


def test_what_is_held_and_for_how_long_is_read_from_the_database(client: Client) -> None:
    contract = subscribe()
    for _ in range(3):
        hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    found = scraped(client)
    assert found["commercial_held_reservations"] == {(BUSINESS,): 3.0}
    assert 0 < found["commercial_oldest_held_seconds"][(BUSINESS,)] < 60
    swept_now()
    found = scraped(client)
    assert found["commercial_held_reservations"] == {(BUSINESS,): 0.0}
    assert found["commercial_oldest_held_seconds"] == {(BUSINESS,): 0.0}
    assert found["commercial_last_sweep_timestamp_seconds"][(BUSINESS,)] > 1e9
    released = counted("commercial_swept_total")[(("business", BUSINESS), ("outcome", "released"))]
    assert released >= 3
