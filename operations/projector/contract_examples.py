"""One fixed example of each contract of the projector."""

from operations.projector.contracts import (
    ExpectedOperationsReceipt,
    OperationsProjectionAppliedReceipt,
    OperationsReceiptAnswer,
    ReceiptConflicting,
    ReceiptFound,
    ReceiptNotFound,
)
from outbox.contracts.canonical import DIGEST_ALGORITHM, sha256_hex
from outbox.contracts.contract import Contract
from outbox.contracts.examples import ENVELOPE
from outbox.contracts.first_release import PROJECTION_NAME, PROJECTION_VERSION, first_release

_SET = first_release().reference
_RECEIPT = OperationsProjectionAppliedReceipt.issue(
    ref="operations-projection-applied-receipt:01",
    destination="core_operations",
    consumer_name="operations_projector",
    projection_name=PROJECTION_NAME,
    projection_version=PROJECTION_VERSION,
    event_id=ENVELOPE.event_id,
    event_type=ENVELOPE.event_type,
    event_schema_version=ENVELOPE.event_schema_version,
    event_envelope_digest_algorithm_version=DIGEST_ALGORITHM,
    event_envelope_sha256=sha256_hex(ENVELOPE.canonical()),
    applied_at="2026-09-24T10:15:31.000000Z",
)

EXAMPLES: dict[str, Contract] = {
    "OperationsProjectionAppliedReceipt": _RECEIPT,
    "ExpectedOperationsReceipt": ExpectedOperationsReceipt(
        operations_projection_applied_receipt=_RECEIPT.reference,
        producer="core",
        destination=_RECEIPT.destination,
        consumer_name=_RECEIPT.consumer_name,
        projection_name=PROJECTION_NAME,
        projection_version=PROJECTION_VERSION,
        event_id=ENVELOPE.event_id,
        event_type=ENVELOPE.event_type,
        event_schema_version=ENVELOPE.event_schema_version,
        event_envelope_digest_algorithm_version=DIGEST_ALGORITHM,
        event_envelope_sha256=_RECEIPT.event_envelope_sha256,
        delivery_set_version=_SET.ref,
        delivery_set_definition_schema_version=_SET.schema_version,
        delivery_set_definition_digest_algorithm_version=DIGEST_ALGORITHM,
        delivery_set_definition_digest=_SET.digest,
        expected_receipt_type="OperationsProjectionAppliedReceipt",
        expected_receipt_schema_version="1",
    ),
    "OperationsReceiptAnswer.found": OperationsReceiptAnswer(outcome=ReceiptFound(receipt=_RECEIPT)),
    "OperationsReceiptAnswer.not_found": OperationsReceiptAnswer(outcome=ReceiptNotFound()),
    "OperationsReceiptAnswer.conflicting": OperationsReceiptAnswer(outcome=ReceiptConflicting()),
}
