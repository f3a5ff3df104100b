"""The targeted read of one applied receipt (O21): found, not found, or conflicting. No list and no latest."""

import uuid
from collections.abc import Iterator
from typing import Any

from config.owners import owner_named
from operations.projector.contracts import (
    RECEIPT_SCHEMA_VERSION,
    RECEIPT_TYPE,
    ExpectedOperationsReceipt,
    OperationsProjectionAppliedReceipt,
    OperationsReceiptAnswer,
    ReceiptConflicting,
    ReceiptFound,
    ReceiptNotFound,
)
from operations.projector.issue_receipt import Build, receipt_ref
from operations.projector.models import ProjectionAppliedReceipt
from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.contracts.contract import ContentReference, ContractViolation, timestamp
from outbox.transport import AccessRefused, Pass, dispatcher_workload

ALIAS = owner_named("core").alias
"""The owner's own connection: a replica behind `.read` may not have yet what was just acknowledged."""


def answer_read_applied_receipt(expected: ExpectedOperationsReceipt, *, caller: Pass) -> OperationsReceiptAnswer:
    """Answers `readOperationsProjectionAppliedReceipt`.

    Found only if every coordinate is the expected one, the definition and producer under which it was applied too.
    Raises `AccessRefused` if another producer's dispatcher asks.
    """
    if caller.workload != dispatcher_workload(expected.producer):
        raise AccessRefused(f"{caller.workload} asks for a receipt of {expected.producer}; it may ask for its own.")
    rows = ProjectionAppliedReceipt.objects.using(ALIAS).filter(event_id__in=set(_event_ids(expected)))
    related = [row for row in rows if _is_for(expected, row) or reference_of(row).ref == _ref(expected)]
    if not related:
        return OperationsReceiptAnswer(outcome=ReceiptNotFound())
    try:
        receipts = [receipt_of(row) for row in related]
    except ContractViolation:
        return OperationsReceiptAnswer(outcome=ReceiptConflicting())
    if len(related) == 1 and _agrees(expected, related[0], receipts[0]):
        return OperationsReceiptAnswer(outcome=ReceiptFound(receipt=receipts[0]))
    return OperationsReceiptAnswer(outcome=ReceiptConflicting())


def reference_of(row: ProjectionAppliedReceipt) -> ContentReference:
    """The four-tuple of a stored receipt."""
    build = Build(row.projection_name, row.projection_version)
    ref = receipt_ref(str(row.event_id), build=build)
    return ContentReference(ref=ref, schema_version=RECEIPT_SCHEMA_VERSION, digest=row.receipt_digest)


def receipt_of(row: ProjectionAppliedReceipt) -> OperationsProjectionAppliedReceipt:
    """A stored receipt, its digest proven. Raises `ContractViolation` if it does not recompute."""
    own: dict[str, Any] = {"operations_projection_applied_receipt": reference_of(row)}
    receipt = OperationsProjectionAppliedReceipt(
        **own,
        destination="core_operations",
        consumer_name="operations_projector",
        projection_name=row.projection_name,
        projection_version=row.projection_version,
        event_id=str(row.event_id),
        event_type=row.event_type,
        event_schema_version=row.event_schema_version,
        event_envelope_digest_algorithm_version=DIGEST_ALGORITHM,
        event_envelope_sha256=row.event_envelope_sha256,
        applied_at=timestamp(row.applied_at),
    )
    return receipt.ensure_digest()


def _ref(expected: ExpectedOperationsReceipt) -> str:
    return expected.operations_projection_applied_receipt.ref


def _event_ids(expected: ExpectedOperationsReceipt) -> Iterator[uuid.UUID]:
    """The event asked for, and the one that the reference names."""
    for text in (expected.event_id, _ref(expected).rpartition(":")[2]):
        try:
            yield uuid.UUID(text)
        except ValueError:
            continue


def _is_for(expected: ExpectedOperationsReceipt, row: ProjectionAppliedReceipt) -> bool:
    return (str(row.event_id), row.consumer_name, row.projection_name, row.projection_version) == (
        expected.event_id,
        expected.consumer_name,
        expected.projection_name,
        expected.projection_version,
    )


def _agrees(
    expected: ExpectedOperationsReceipt, row: ProjectionAppliedReceipt, receipt: OperationsProjectionAppliedReceipt
) -> bool:
    return (
        _is_for(expected, row)
        and receipt.reference == expected.operations_projection_applied_receipt
        and expected.expected_receipt_type == RECEIPT_TYPE
        and expected.expected_receipt_schema_version == RECEIPT_SCHEMA_VERSION
        and receipt.event_type == expected.event_type
        and receipt.event_schema_version == expected.event_schema_version
        and receipt.event_envelope_sha256 == expected.event_envelope_sha256
        and row.producer == expected.producer
        and (
            row.delivery_set_version,
            row.delivery_set_definition_schema_version,
            row.delivery_set_definition_digest_algorithm_version,
            row.delivery_set_definition_digest,
        )
        == (
            expected.delivery_set_version,
            expected.delivery_set_definition_schema_version,
            expected.delivery_set_definition_digest_algorithm_version,
            expected.delivery_set_definition_digest,
        )
    )
