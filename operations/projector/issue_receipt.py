"""The canonical receipt and its ack, written straight in canonical order.

Every value here is a plain word of the contract (UUID, digest, version, event type), so nothing needs escaping. A test
proves that these bytes are those of `OperationsProjectionAppliedReceipt`, and the database recomputes the digest.
"""

from dataclasses import dataclass

from operations.projector.contracts import CONSUMER_NAME, DESTINATION, RECEIPT_SCHEMA_VERSION
from outbox.contracts.ack import ActiveConsumerAck, OperationsProjectionApplied
from outbox.contracts.canonical import DIGEST_ALGORITHM, sha256_hex
from outbox.contracts.delivery import Acknowledged, DeliveryRequest

_OWN = "operationsProjectionAppliedReceipt"
_ALGORITHM = f'"{_OWN}DigestAlgorithmVersion":"{DIGEST_ALGORITHM}",'
_SUBJECT = (
    f'"consumerName":"{CONSUMER_NAME}","destination":"{DESTINATION}",'
    f'"eventEnvelopeDigestAlgorithmVersion":"{DIGEST_ALGORITHM}","eventEnvelopeSha256":"'
)


@dataclass(frozen=True, slots=True)
class Build:
    """One version of one projection."""

    projection_name: str
    projection_version: str


@dataclass(frozen=True, slots=True)
class Issued:
    """A receipt as it is stored and answered."""

    digest: str
    body: bytes


def issue(request: DeliveryRequest, *, build: Build, applied_at: str) -> Issued:
    """The receipt of one event in one build, at `applied_at` (wire form)."""
    member = request.member
    subject = (
        f'{_SUBJECT}{request.envelope_sha256}","eventId":"{request.event_id}",'
        f'"eventSchemaVersion":"{member.event_schema_version}","eventType":"{member.event_type}",'
    )
    tail = (
        f'"{_OWN}SchemaVersion":"{RECEIPT_SCHEMA_VERSION}","projectionName":"{build.projection_name}",'
        f'"projectionVersion":"{build.projection_version}"}}'
    )
    digest = sha256_hex(f"{{{subject}{_ALGORITHM}{tail}".encode())
    ref = receipt_ref(request.event_id, build=build)
    body = f'{{"appliedAt":"{applied_at}",{subject}"{_OWN}Digest":"{digest}",{_ALGORITHM}"{_OWN}Ref":"{ref}",{tail}'
    return Issued(digest=digest, body=body.encode())


def receipt_ref(event_id: str, *, build: Build) -> str:
    """The receipt's reference is its key, so it needs no index of its own."""
    return f"{build.projection_name}:{build.projection_version}:{event_id}"


def acknowledge(request: DeliveryRequest, *, build: Build, issued: Issued) -> Acknowledged:
    """The ack that names this receipt. Its values are proven: the request was examined, the rest is ours."""
    applied = OperationsProjectionApplied.of_proven(
        kind="operations_projection",
        operations_projection_applied_receipt_ref=receipt_ref(request.event_id, build=build),
        operations_projection_applied_receipt_schema_version=RECEIPT_SCHEMA_VERSION,
        operations_projection_applied_receipt_digest_algorithm_version=DIGEST_ALGORITHM,
        operations_projection_applied_receipt_digest=issued.digest,
    )
    ack = ActiveConsumerAck.of_proven(
        destination=DESTINATION,
        consumer_name=CONSUMER_NAME,
        event_id=request.event_id,
        event_envelope_digest_algorithm_version=DIGEST_ALGORITHM,
        event_envelope_sha256=request.envelope_sha256,
        applied_receipt=applied,
    )
    return Acknowledged(ack=ack, receipt=issued.body)
