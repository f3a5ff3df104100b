"""What is proven of one delivery before any transaction is opened (O20, O26, D12).

The bytes hash to the stated digest, are canonical, say what the request and its frozen member say, satisfy the exact
contract of their event, and belong to a projection that this projector builds.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from operations.projector.contracts import CONSUMER_NAME, DESTINATION, RECEIPT_SCHEMA_VERSION, RECEIPT_TYPE
from operations.projector.issue_receipt import Build
from operations.projector.rules import Rule
from operations.timelines.fact import Fact, Part
from outbox.contracts.canonical import DIGEST_ALGORITHM, sha256_hex
from outbox.contracts.contract import ContractViolation
from outbox.contracts.delivery import DeliveryRequest, NonRetryable
from outbox.contracts.envelope import Envelope


class Refusal(StrEnum):
    """Why an event can never be applied (closed); the code of its quarantine."""

    UNKNOWN_DIGEST_ALGORITHM = "unknown_digest_algorithm"
    """The request names another digest algorithm than this release computes."""
    DIGEST_MISMATCH = "digest_mismatch"
    """The bytes do not hash to the digest they came with."""
    UNKNOWN_EVENT = "unknown_event"
    """No rule for this exact event type and schema version."""
    UNKNOWN_PROJECTION = "unknown_projection"
    """The frozen member names a projection version that this projector does not build."""
    SCHEMA_REJECTED = "schema_rejected"
    """The bytes are not canonical, or envelope or payload breaks its contract."""
    PRODUCER_MISMATCH = "producer_mismatch"
    """The event does not come from the owner that produces it."""
    REQUEST_MISMATCH = "request_mismatch"
    """The envelope says another event, aggregate or revision than the request."""
    MEMBER_MISMATCH = "member_mismatch"
    """The frozen member is for another event, destination, consumer or receipt."""
    PAYLOAD_CONTRADICTS_ENVELOPE = "payload_contradicts_envelope"
    """The payload names another aggregate than the envelope."""
    EVENT_CONFLICT = "event_conflict"
    """This event id was applied before, with another digest, producer or definition."""
    REVISION_CONFLICT = "revision_conflict"
    """Another event already holds this revision of the aggregate."""
    OPERATION_CONFLICT = "operation_conflict"
    """Another run already holds this operation or run id."""


Builds = Mapping[tuple[str | None, str | None], Build]
"""What a projector builds, by the projection name and version that a frozen member names."""


class Examined(NamedTuple):
    """A delivery whose bytes are proven, and the typed fact that they are."""

    request: DeliveryRequest
    build: Build
    fact: Fact


def examine(
    request: DeliveryRequest, *, rules: Mapping[tuple[str, str], Rule], builds: Builds
) -> Examined | NonRetryable:
    """The proven delivery, or why it can never be applied."""
    if refused := _refused_unread(request, rules, builds):
        return refused
    rule = rules[request.member.event_type, request.member.event_schema_version]
    try:
        envelope = rule.envelope.parse(request.envelope)
    except ContractViolation as error:
        return NonRetryable(Refusal.SCHEMA_REJECTED, str(error))
    if refusal := _contradiction(request, envelope, rule):
        return NonRetryable(refusal)
    fact = Fact(rule.part, rule.producer, envelope, envelope.payload, request.envelope, request.envelope_sha256)
    return Examined(request, builds[request.member.projection_name, request.member.projection_version], fact)


def _refused_unread(
    request: DeliveryRequest, rules: Mapping[tuple[str, str], Rule], builds: Builds
) -> NonRetryable | None:
    member = request.member
    if request.digest_algorithm_version != DIGEST_ALGORITHM:
        return NonRetryable(Refusal.UNKNOWN_DIGEST_ALGORITHM, request.digest_algorithm_version)
    if sha256_hex(request.envelope) != request.envelope_sha256:
        return NonRetryable(Refusal.DIGEST_MISMATCH)
    if (member.event_type, member.event_schema_version) not in rules:
        return NonRetryable(Refusal.UNKNOWN_EVENT, f"{member.event_type} with version {member.event_schema_version}")
    if (member.projection_name, member.projection_version) not in builds:
        return NonRetryable(
            Refusal.UNKNOWN_PROJECTION, f"{member.projection_name} with version {member.projection_version}"
        )
    return None


def _contradiction(request: DeliveryRequest, envelope: Envelope, rule: Rule) -> Refusal | None:
    member = request.member
    if request.producer != rule.producer:
        return Refusal.PRODUCER_MISMATCH
    if (
        envelope.event_id != request.event_id
        or envelope.aggregate_id != request.aggregate_id
        or envelope.aggregate_revision != request.aggregate_revision
    ):
        return Refusal.REQUEST_MISMATCH
    if (
        member.event_type != envelope.event_type
        or member.event_schema_version != envelope.event_schema_version
        or member.destination != DESTINATION
        or member.consumer_name != CONSUMER_NAME
        or member.expected_receipt_type != RECEIPT_TYPE
        or member.expected_receipt_schema_version != RECEIPT_SCHEMA_VERSION
    ):
        return Refusal.MEMBER_MISMATCH
    own = _AGGREGATE_OF[rule.part]
    if own is not None and own(envelope.payload) != envelope.aggregate_id:
        return Refusal.PAYLOAD_CONTRADICTS_ENVELOPE
    return None


_AGGREGATE_OF: dict[Part, Callable[[Any], str] | None] = {
    Part.RUN: lambda payload: payload.run_id,
    Part.RESERVATION: lambda payload: payload.billing_reservation_id,
    Part.FACT: None,
}
