"""`readOperationsProjectionAppliedReceipt`: found, not found, conflicting, and nobody else's business (O21)."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import connections

from config.owners import producers
from operations.projector.contracts import (
    READ_APPLIED_RECEIPT,
    ExpectedOperationsReceipt,
    ReceiptConflicting,
    ReceiptFound,
    ReceiptNotFound,
)
from outbox.contracts.contract import ContentReference
from outbox.contracts.delivery import Acknowledged, DeliveryRequest
from outbox.transport import AccessRefused, Pass, ask, dispatcher_workload, scope_of, transport
from tests.operations.facts import PROJECTOR, fact, fact_delivery
from tests.operations.make import acknowledged, admission, apply, delivery, new_event_id


def expected_of(request: DeliveryRequest, reference: ContentReference, **changes: Any) -> ExpectedOperationsReceipt:
    """What the dispatcher of `request` expects of the receipt it was given."""
    member = request.member
    values: dict[str, Any] = {
        "operations_projection_applied_receipt": reference,
        "producer": request.producer,
        "destination": member.destination,
        "consumer_name": member.consumer_name,
        "projection_name": member.projection_name,
        "projection_version": member.projection_version,
        "event_id": request.event_id,
        "event_type": member.event_type,
        "event_schema_version": member.event_schema_version,
        "event_envelope_digest_algorithm_version": request.digest_algorithm_version,
        "event_envelope_sha256": request.envelope_sha256,
        "delivery_set_version": member.definition.ref,
        "delivery_set_definition_schema_version": member.definition.schema_version,
        "delivery_set_definition_digest_algorithm_version": member.definition.digest_algorithm_version,
        "delivery_set_definition_digest": member.definition.digest,
        "expected_receipt_type": member.expected_receipt_type,
        "expected_receipt_schema_version": member.expected_receipt_schema_version,
    }
    return ExpectedOperationsReceipt(**values | changes)


def read(expected: ExpectedOperationsReceipt, *, workload: str = "core.dispatcher") -> Any:
    return ask(READ_APPLIED_RECEIPT, workload=workload, expected=expected).outcome


def applied(request: DeliveryRequest) -> Acknowledged:
    return acknowledged(apply(request))[0]


@pytest.mark.spec("O21")
def test_the_receipt_that_was_answered_is_found(database: None) -> None:
    request = delivery(admission().run)
    answer = applied(request)
    outcome = read(expected_of(request, answer.ack.applied_receipt.receipt))
    assert isinstance(outcome, ReceiptFound)
    assert outcome.receipt.canonical() == answer.receipt


@pytest.mark.spec("O21")
def test_a_receipt_of_another_producer_is_found_by_that_producer(database: None) -> None:
    request = fact_delivery(fact(aggregate_id="testing:1", revision=1))
    (answer,) = acknowledged(PROJECTOR.consume([request]))
    expected = expected_of(request, answer.ack.applied_receipt.receipt)
    assert isinstance(read(expected, workload="billing.dispatcher"), ReceiptFound)


@pytest.mark.spec("O21")
def test_without_a_receipt_for_event_or_reference_it_is_not_found(database: None) -> None:
    request = delivery(admission().run)
    reference = ContentReference(ref=f"operations:1:{request.event_id}", schema_version="1", digest="a" * 64)
    assert isinstance(read(expected_of(request, reference)), ReceiptNotFound)
    nonsense = ContentReference(ref="nonsense", schema_version="1", digest="a" * 64)
    assert isinstance(read(expected_of(request, nonsense, event_id="not-a-uuid")), ReceiptNotFound)


@pytest.mark.spec("O21")
@pytest.mark.parametrize(
    "changes",
    [
        {"event_type": "wallet.reserved@2.0"},
        {"event_schema_version": "2.1"},
        {"event_envelope_sha256": "b" * 64},
        {"delivery_set_version": "2025.9"},
        {"delivery_set_definition_schema_version": "2"},
        {"delivery_set_definition_digest": "b" * 64},
        {"expected_receipt_schema_version": "2"},
        {"projection_version": "2"},
        {"projection_name": "shadow"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_one_other_coordinate_is_a_conflict(database: None, changes: dict[str, Any]) -> None:
    request = delivery(admission().run)
    reference = applied(request).ack.applied_receipt.receipt
    assert isinstance(read(expected_of(request, reference, **changes)), ReceiptConflicting)


@pytest.mark.spec("O21")
@pytest.mark.parametrize("part", ["ref", "schema_version", "digest"])
def test_one_other_part_of_the_four_tuple_is_a_conflict(database: None, part: str) -> None:
    request = delivery(admission().run)
    reference = applied(request).ack.applied_receipt.receipt
    other = {"ref": f"operations:1:{new_event_id()}", "schema_version": "2", "digest": "c" * 64}[part]
    changed: dict[str, Any] = {part: other}
    forged = reference._replace(**changed)
    assert isinstance(read(expected_of(request, forged)), ReceiptConflicting)


@pytest.mark.spec("O21")
def test_the_reference_of_another_events_receipt_is_a_conflict(database: None) -> None:
    first, second = delivery(admission().run), delivery(admission().run)
    reference = applied(first).ack.applied_receipt.receipt
    assert isinstance(read(expected_of(second, reference)), ReceiptConflicting)
    applied(second)
    assert isinstance(read(expected_of(second, reference)), ReceiptConflicting)


@pytest.mark.spec("O21")
def test_another_producer_than_the_one_it_was_applied_for_is_a_conflict(database: None) -> None:
    request = delivery(admission().run)
    reference = applied(request).ack.applied_receipt.receipt
    expected = expected_of(request, reference, producer="billing")
    assert isinstance(read(expected, workload="billing.dispatcher"), ReceiptConflicting)


@pytest.mark.spec("O21")
def test_a_producer_may_not_ask_in_the_name_of_another(database: None) -> None:
    request = delivery(admission().run)
    expected = expected_of(request, applied(request).ack.applied_receipt.receipt)
    with pytest.raises(AccessRefused):
        read(expected, workload="billing.dispatcher")


@pytest.mark.spec("O21")
def test_only_dispatchers_of_producers_may_ask() -> None:
    assert READ_APPLIED_RECEIPT.workloads == {dispatcher_workload(owner.name) for owner in producers()}


@pytest.mark.spec("O21")
@pytest.mark.parametrize(
    "changes",
    [{"workload": "core.admin"}, {"workload": "core"}, {"audience": "core_operations"}, {"scope": "0" * 64}],
    ids=["admin", "owner", "audience", "scope"],
)
def test_a_wrong_workload_audience_or_scope_opens_nothing(database: None, changes: dict[str, str]) -> None:
    request = delivery(admission().run)
    expected = expected_of(request, applied(request).ack.applied_receipt.receipt)
    access = Pass(workload="core.dispatcher", audience=READ_APPLIED_RECEIPT.audience, scope=scope_of(expected))
    with pytest.raises(AccessRefused):
        transport().ask(READ_APPLIED_RECEIPT, expected=expected, access=replace(access, **changes))


@pytest.mark.spec("O21")
@pytest.mark.parametrize("name", sorted(ExpectedOperationsReceipt.model_fields))
def test_the_scope_binds_every_coordinate(name: str) -> None:
    request = delivery(admission().run)
    expected = expected_of(request, ContentReference(ref="a", schema_version="1", digest="a" * 64))
    other = expected.model_copy(update={name: "another"})
    assert scope_of(ExpectedOperationsReceipt.model_construct(**other.__dict__)) != scope_of(expected)


@pytest.mark.spec("O21")
def test_a_stored_receipt_whose_digest_does_not_recompute_is_never_found(database: None) -> None:
    """Forged by someone who took the constraint away first."""
    request = delivery(admission().run)
    reference = applied(request).ack.applied_receipt.receipt
    table = "operations_projection_applied_receipts"
    with connections["default.schema"].cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'operations_receipt_digest'"
        )
        (definition,) = cursor.fetchone()
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT operations_receipt_digest, DISABLE TRIGGER USER")
        try:
            cursor.execute(f"UPDATE {table} SET event_type = 'other@1'")
            outcome = read(expected_of(request, reference, event_type="other@1"))
        finally:
            cursor.execute(f"DELETE FROM {table}")
            cursor.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT operations_receipt_digest {definition}, ENABLE TRIGGER USER"
            )
    assert isinstance(outcome, ReceiptConflicting)
