"""What the projector answers, and what its database knows about it."""

import json

import pytest

from operations.projector.contracts import OperationsProjectionAppliedReceipt
from operations.projector.issue_receipt import Build, acknowledge, issue
from operations.projector.models import ProjectionAppliedReceipt
from operations.projector.reads import receipt_of
from tests.operations.make import acknowledged, admission, apply, body, delivery, one, rows

BUILD = Build("operations", "1")


@pytest.mark.spec("O20", "O21")
def test_the_written_receipt_is_byte_for_byte_what_its_contract_says() -> None:
    request = delivery(admission().run)
    issued = issue(request, build=BUILD, applied_at="2026-10-01T12:00:00.000001Z")
    expected = OperationsProjectionAppliedReceipt.issue(
        ref=f"operations:1:{request.event_id}",
        destination="core_operations",
        consumer_name="operations_projector",
        projection_name="operations",
        projection_version="1",
        event_id=request.event_id,
        event_type="run.created@2.0",
        event_schema_version="2.0",
        event_envelope_digest_algorithm_version="jcs-sha256-v1",
        event_envelope_sha256=request.envelope_sha256,
        applied_at="2026-10-01T12:00:00.000001Z",
    )
    assert issued.body == expected.canonical()
    assert issued.digest == expected.reference.digest


@pytest.mark.spec("O20")
def test_the_ack_names_the_receipt_that_comes_with_it() -> None:
    request = delivery(admission().wallet)
    verdict = acknowledge(
        request, build=BUILD, issued=issue(request, build=BUILD, applied_at="2026-10-01T12:00:00.000000Z")
    )
    verdict.ack.ensure_branch()
    assert verdict.ack.applied_receipt.receipt == body(verdict, OperationsProjectionAppliedReceipt).reference
    assert verdict.ack.event_envelope_sha256 == request.envelope_sha256
    assert type(verdict.ack).parse(verdict.ack.canonical()) == verdict.ack


@pytest.mark.spec("O21", "O26")
def test_an_applied_event_has_one_receipt_that_recomputes_from_the_database(database: None) -> None:
    pair = admission()
    answers = acknowledged(apply(*pair.requests))
    stored = {str(row.event_id): row for row in ProjectionAppliedReceipt.objects.using("default.read")}
    assert len(stored) == 2
    for answer in answers:
        receipt = body(answer, OperationsProjectionAppliedReceipt)
        row = stored[receipt.event_id]
        assert receipt_of(row) == receipt
        assert receipt_of(row).canonical() == answer.receipt
        assert row.producer == "core"
        assert row.delivery_set_version == "2026.1"


@pytest.mark.spec("O21")
def test_the_digest_covers_all_but_reference_time_and_itself() -> None:
    covered = set(OperationsProjectionAppliedReceipt.model_fields) - {
        "operations_projection_applied_receipt_ref",
        "operations_projection_applied_receipt_digest",
        "applied_at",
    }
    request = delivery(admission().run)
    receipt = body(
        acknowledge(request, build=BUILD, issued=issue(request, build=BUILD, applied_at="2026-10-01T12:00:00.000000Z")),
        OperationsProjectionAppliedReceipt,
    )
    aliases = {OperationsProjectionAppliedReceipt.model_fields[name].alias for name in covered}
    assert set(receipt.candidate()) == aliases


@pytest.mark.spec("O20")
def test_an_answer_that_was_lost_is_given_again_byte_for_byte(database: None) -> None:
    pair = admission()
    first = acknowledged(apply(*pair.requests))
    again = acknowledged(apply(*pair.requests))
    assert [answer.receipt for answer in again] == [answer.receipt for answer in first]
    assert [answer.ack for answer in again] == [answer.ack for answer in first]
    assert one("SELECT count(*) FROM timeline_entries") == 2
    assert one("SELECT sum(applied_events) FROM projection_build_runs") == 2


@pytest.mark.spec("O26")
def test_one_inbox_transaction_writes_receipt_projection_identifiers_and_build(database: None) -> None:
    pair = admission()
    acknowledged(apply(*pair.requests))
    touched = (
        "operations_projection_applied_receipts",
        "projection_aggregates",
        "operation_summaries",
        "timeline_entries",
        "exact_identifiers",
        "projection_build_runs",
    )
    transactions = {one(f"SELECT min(xmin::text) FROM {table}") for table in touched}
    transactions |= {one(f"SELECT max(xmin::text) FROM {table}") for table in touched}
    assert len(transactions) == 1
    assert rows("SELECT runs, applied_events, last_event_id::text FROM projection_build_runs") == [
        (1, 2, pair.wallet.event_id)
    ]


@pytest.mark.spec("O20")
def test_the_golden_receipt_names_the_projection_of_the_frozen_member(database: None) -> None:
    (answer,) = acknowledged(apply(delivery(admission().run)))
    receipt = json.loads(answer.receipt)
    assert (receipt["projectionName"], receipt["projectionVersion"]) == ("operations", "1")
