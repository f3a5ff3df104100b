"""Accepted events of other databases are kept byte for byte beside their receipts; core's own are not copied (O26)."""

import uuid

import pytest

from outbox.contracts.delivery import NonRetryable
from tests.operations.facts import PROJECTOR, fact, fact_delivery
from tests.operations.make import acknowledged, admission, changed, new_event_id, one, rows


@pytest.mark.spec("O26")
def test_an_event_of_another_database_is_stored_with_its_exact_bytes(database: None) -> None:
    event = fact(aggregate_id=f"testing:{uuid.uuid4()}", revision=1)
    acknowledged(PROJECTOR.consume([fact_delivery(event)]))
    assert rows(
        "SELECT s.event_id::text, s.event_envelope, s.producer, s.delivery_set_version, r.producer"
        " FROM operations_source_events s JOIN operations_projection_applied_receipts r USING (event_id)"
    ) == [(event.event_id, event.canonical().decode(), "billing", "2026.1", "billing")]


@pytest.mark.spec("O26")
def test_core_events_are_not_copied(database: None) -> None:
    acknowledged(PROJECTOR.consume(admission().requests))
    assert one("SELECT count(*) FROM operations_source_events") == 0


@pytest.mark.spec("O26")
def test_an_event_that_waits_is_not_stored_yet(database: None) -> None:
    PROJECTOR.consume([fact_delivery(fact(aggregate_id=f"testing:{uuid.uuid4()}", revision=2))])
    assert one("SELECT count(*) FROM operations_source_events") == 0


@pytest.mark.spec("O26")
@pytest.mark.trap("D12")
def test_other_bytes_under_a_stored_event_id_are_refused(database: None) -> None:
    event = fact(aggregate_id=f"testing:{uuid.uuid4()}", revision=1)
    acknowledged(PROJECTOR.consume([fact_delivery(event)]))
    (verdict,) = PROJECTOR.consume([fact_delivery(changed(event, aggregate_id=f"testing:{uuid.uuid4()}"))])
    assert isinstance(verdict, NonRetryable)
    assert one("SELECT event_envelope FROM operations_source_events") == event.canonical().decode()


@pytest.mark.spec("O26")
def test_text_with_every_character_that_arrays_escape_is_stored_unchanged(database: None) -> None:
    awkward = "a,b{c}\"d\\e'f%g$1;--"
    event = fact(aggregate_id=awkward, revision=1, operation_id=f"op-{awkward}", correlation_id=awkward)
    acknowledged(PROJECTOR.consume([fact_delivery(event)]))
    assert rows("SELECT aggregate_id, operation_id, correlation_id FROM timeline_entries") == [
        (awkward, f"op-{awkward}", awkward)
    ]
    assert one("SELECT event_envelope FROM operations_source_events") == event.canonical().decode()


@pytest.mark.spec("O26")
def test_a_new_event_for_a_stored_revision_is_refused(database: None) -> None:
    event = fact(aggregate_id=f"testing:{uuid.uuid4()}", revision=1)
    acknowledged(PROJECTOR.consume([fact_delivery(event)]))
    (verdict,) = PROJECTOR.consume([fact_delivery(changed(event, event_id=new_event_id()))])
    assert isinstance(verdict, NonRetryable)
    assert verdict.code == "revision_conflict"
