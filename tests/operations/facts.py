"""An event of another owner, for what the projector does with every event that is neither run nor reservation."""

from dataclasses import replace
from typing import Any

from operations.projector.consumer import BUILDS, Projector
from operations.projector.rules import RULES, rule
from operations.timelines.fact import Part
from outbox.contracts.canonical import sha256_hex
from outbox.contracts.contract import Contract, Count, Identifier
from outbox.contracts.delivery import DeliveryRequest
from outbox.contracts.envelope import Envelope, event_payload
from tests.operations.make import MEMBERS, OCCURRED_AT, new_event_id

EVENT_TYPE, VERSION = "testing.fact.recorded@1", "1"
PRODUCER = "billing"


@event_payload(EVENT_TYPE, VERSION)
class FactRecorded(Contract):
    """A payload that only tests know."""

    subject_id: Identifier
    quantity: Count


PROJECTOR = Projector(
    rules={**RULES, (EVENT_TYPE, VERSION): rule(EVENT_TYPE, VERSION, producer=PRODUCER, part=Part.FACT)}, builds=BUILDS
)


def fact(*, aggregate_id: str, revision: int, operation_id: str = "operation-of-facts", **fields: Any) -> Envelope:
    """One revision of an aggregate of another owner."""
    values: dict[str, Any] = {
        "event_id": new_event_id(),
        "event_type": EVENT_TYPE,
        "event_schema_version": VERSION,
        "aggregate_id": aggregate_id,
        "aggregate_revision": revision,
        "tenant_kind": "organization",
        "tenant_id": "organization-1",
        "workspace_id": "workspace-1",
        "correlation_id": "correlation-of-facts",
        "operation_id": operation_id,
        "occurred_at": OCCURRED_AT,
        "payload": FactRecorded(subject_id=aggregate_id, quantity=revision).wire(),
    }
    return Envelope(**values | fields)


def fact_delivery(event: Envelope, /, **fields: Any) -> DeliveryRequest:
    """The delivery of such an event."""
    data = event.canonical()
    member = replace(MEMBERS["run.created@2.0"], event_type=event.event_type, event_schema_version=VERSION)
    request = DeliveryRequest(
        event_id=event.event_id,
        envelope=data,
        digest_algorithm_version="jcs-sha256-v1",
        envelope_sha256=sha256_hex(data),
        aggregate_id=event.aggregate_id,
        aggregate_revision=event.aggregate_revision,
        member=member,
        producer=PRODUCER,
    )
    return request._replace(**fields)
