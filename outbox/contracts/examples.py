"""One fixed example of each contract of the outbox; goldens and the published documentation are made of them."""

from typing import Any

from outbox.contracts.ack import (
    ActiveConsumerAck,
    BillingFinalizationCoordinated,
    BillingSettlementCaughtUp,
    MeteringInputProcessed,
    OperationsProjectionApplied,
)
from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.contracts.contract import ContentReference, Contract
from outbox.contracts.destinations import RULES, Destination
from outbox.contracts.envelope import Envelope
from outbox.contracts.first_release import first_release

EVENT_ID = "01997a5e-8c00-7000-8000-000000000001"
OCCURRED_AT = "2026-09-24T10:15:30.000001Z"


def reference(kind: str) -> ContentReference:
    """A well-formed reference to an object of this kind that stands in no database."""
    return ContentReference(ref=f"{kind}:01", schema_version="1", digest=f"{len(kind):02x}" * 32)


ENVELOPE = Envelope(
    tenant_kind="organization",
    tenant_id="tenant:acme",
    workspace_id="workspace:research",
    event_id=EVENT_ID,
    event_type="run.created@2.0",
    event_schema_version="2.0",
    aggregate_id="run:01",
    aggregate_revision=1,
    correlation_id="correlation:01",
    operation_id="operation:01",
    occurred_at=OCCURRED_AT,
    payload={
        "billingAccountId": "account:acme",
        "billingReservationId": "reservation:01",
        "runAdmissionManifestDigest": "ab" * 32,
        "runAdmissionManifestDigestAlgorithmVersion": DIGEST_ALGORITHM,
        "runAdmissionManifestRef": "run-admission-manifest:01",
        "runAdmissionManifestSchemaVersion": "1",
        "runId": "run:01",
    },
)


def _ack(destination: Destination, applied_receipt: Any) -> ActiveConsumerAck:
    return ActiveConsumerAck(
        destination=destination,
        consumer_name=RULES[destination].consumer_name,
        event_id=EVENT_ID,
        event_envelope_digest_algorithm_version=DIGEST_ALGORITHM,
        event_envelope_sha256="cd" * 32,
        applied_receipt=applied_receipt,
    )


ACKS: tuple[ActiveConsumerAck, ...] = (
    _ack(
        "core_operations",
        OperationsProjectionApplied(
            operations_projection_applied_receipt=reference("operations-projection-applied-receipt")
        ),
    ),
    _ack(
        "metering_input_processor",
        MeteringInputProcessed(
            metering_input_processor_consumer_receipt=reference("metering-input-processor-consumer-receipt")
        ),
    ),
    _ack(
        "billing_finalization_coordinator",
        BillingFinalizationCoordinated(
            billing_finalization_coordinator_consumer_receipt=reference(
                "billing-finalization-coordinator-consumer-receipt"
            )
        ),
    ),
    _ack(
        "billing_settlement_catch_up",
        BillingSettlementCaughtUp(
            billing_settlement_catch_up_consumer_receipt=reference("billing-settlement-catch-up-consumer-receipt")
        ),
    ),
)

EXAMPLES: dict[str, Contract] = {
    "Envelope": ENVELOPE,
    "Envelope.caused_in_a_project": ENVELOPE.model_copy(
        update={"project_id": "project:weather", "causation_id": "01997a5e-8c00-7000-8000-000000000000"}
    ),
    "DeliverySetDefinition.first_release": first_release(),
    **{f"ActiveConsumerAck.{ack.applied_receipt.kind}": ack for ack in ACKS},
}
