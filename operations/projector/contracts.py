"""What the projector publishes: its applied receipt, and the one targeted read of it (O21).

A receipt proves that one exact event is part of one exact projection. It freezes no aggregate state, so several
revisions of an aggregate may be applied, in order, in one transaction. There is no list and no "latest" to ask for.
"""

from typing import Annotated, Literal

from pydantic import Field

from config.owners import producers
from outbox.contracts.contract import (
    ContentAddressed,
    ContentReference,
    Contract,
    DigestAlgorithm,
    Identifier,
    Sha256,
    Timestamp,
    Version,
)
from outbox.contracts.envelope import EventType
from outbox.contracts.question import Question, dispatcher_workload
from outbox.contracts.receipt import receipt_contract

RECEIPT_TYPE = "OperationsProjectionAppliedReceipt"
RECEIPT_SCHEMA_VERSION = "1"
DESTINATION: Literal["core_operations"] = "core_operations"
CONSUMER_NAME: Literal["operations_projector"] = "operations_projector"


@receipt_contract(RECEIPT_TYPE, RECEIPT_SCHEMA_VERSION)
class OperationsProjectionAppliedReceipt(
    ContentAddressed,
    own="operations_projection_applied_receipt",
    version=RECEIPT_SCHEMA_VERSION,
    excluded=("applied_at",),
):
    """One event is applied to one projection version. One per (consumer, projection name, version, event)."""

    destination: Literal["core_operations"]
    consumer_name: Literal["operations_projector"]
    projection_name: Identifier
    projection_version: Version
    event_id: Identifier
    event_type: EventType
    event_schema_version: Version
    event_envelope_digest_algorithm_version: DigestAlgorithm
    event_envelope_sha256: Sha256
    applied_at: Timestamp


class ExpectedOperationsReceipt(Contract):
    """The whole identity a dispatcher holds: the receipt it was given, and what its own frozen member says.

    The projection comes from the member of the event's frozen definition, never from the receipt's body.
    """

    operations_projection_applied_receipt: ContentReference
    producer: Identifier
    """The owner whose dispatcher asks."""
    destination: Literal["core_operations"]
    consumer_name: Literal["operations_projector"]
    projection_name: Identifier
    projection_version: Version
    event_id: Identifier
    event_type: EventType
    event_schema_version: Version
    event_envelope_digest_algorithm_version: DigestAlgorithm
    event_envelope_sha256: Sha256
    delivery_set_version: Version
    delivery_set_definition_schema_version: Version
    delivery_set_definition_digest_algorithm_version: DigestAlgorithm
    delivery_set_definition_digest: Sha256
    expected_receipt_type: Literal["OperationsProjectionAppliedReceipt"]
    expected_receipt_schema_version: Version


class ReceiptFound(Contract):
    state: Literal["found"] = "found"
    receipt: OperationsProjectionAppliedReceipt


class ReceiptNotFound(Contract):
    """Nothing is stored under this receipt reference or for this event."""

    state: Literal["not_found"] = "not_found"


class ReceiptConflicting(Contract):
    """Something is stored under this reference or for this event, and it is not what was expected."""

    state: Literal["conflicting"] = "conflicting"


class OperationsReceiptAnswer(Contract):
    outcome: Annotated[ReceiptFound | ReceiptNotFound | ReceiptConflicting, Field(discriminator="state")]


READ_APPLIED_RECEIPT = Question(
    name="readOperationsProjectionAppliedReceipt",
    audience="operations_projector",
    workloads=frozenset(dispatcher_workload(owner.name) for owner in producers()),
    expected=ExpectedOperationsReceipt,
    answer=OperationsReceiptAnswer,
)
