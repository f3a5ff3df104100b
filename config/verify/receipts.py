"""What producers hold as acknowledged, against the receipts in the databases of the consumers' owners (O20, O21).

The producer is read first: a delivery that is acknowledged there has had its receipt committed before.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from config.owners import consumer_for
from config.verify.check import Check, Row, Snapshot, Tally, snapshots
from config.verify.places import PRODUCERS
from operations.projector.contracts import RECEIPT_TYPE
from outbox.contracts.contract import ContentAddressed, ContractViolation
from outbox.contracts.receipt import UnknownReceipt, receipt_of

ACKNOWLEDGED = """
SELECT d.event_id::text, d.destination, d.expected_receipt_type, d.expected_receipt_schema_version, d.consumer_name,
       d.required_projection_name, d.required_projection_version, d.ack_consumer_name, d.ack_receipt_type,
       d.ack_receipt_ref, d.ack_receipt_schema_version, d.ack_receipt_digest_algorithm_version, d.ack_receipt_digest,
       d.ack_event_envelope_sha256, d.ack_event_envelope_digest_algorithm_version, e.event_type, e.schema_version,
       e.event_envelope_sha256, e.event_envelope_digest_algorithm_version, e.delivery_set_version,
       e.delivery_set_definition_digest
  FROM outbox_deliveries d JOIN outbox_events e USING (event_id) WHERE d.status = 'acknowledged'
"""

RECEIPTS: dict[str, str] = {
    RECEIPT_TYPE: """
SELECT event_id::text, projection_name || ':' || projection_version || ':' || event_id, json_build_object(
           'destination', 'core_operations', 'consumerName', consumer_name, 'projectionName', projection_name,
           'projectionVersion', projection_version, 'eventId', event_id, 'eventType', event_type,
           'eventSchemaVersion', event_schema_version,
           'eventEnvelopeDigestAlgorithmVersion', event_envelope_digest_algorithm_version,
           'eventEnvelopeSha256', event_envelope_sha256,
           'appliedAt', to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
           'operationsProjectionAppliedReceiptRef', projection_name || ':' || projection_version || ':' || event_id,
           'operationsProjectionAppliedReceiptSchemaVersion', '1',
           'operationsProjectionAppliedReceiptDigestAlgorithmVersion', 'jcs-sha256-v1',
           'operationsProjectionAppliedReceiptDigest', receipt_digest)::text,
       producer, delivery_set_version, delivery_set_definition_digest
  FROM operations_projection_applied_receipts
 WHERE event_id = ANY(%s::uuid[])
""",
}
"""Per receipt type: the receipts of some events as (event, ref, the receipt as JSON, producer, definition, its digest).

The receipt is put together here from its stored parts, and not by the code that issues it."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """One acknowledged delivery, as its producer's database says it."""

    event_id: str
    destination: str
    expected_receipt_type: str
    expected_receipt_schema_version: str
    consumer_name: str
    projection_name: str | None
    projection_version: str | None
    ack_consumer_name: str
    ack_receipt_type: str
    ack_receipt_ref: str
    ack_receipt_schema_version: str
    ack_receipt_algorithm: str
    ack_receipt_digest: str
    ack_sha256: str
    ack_algorithm: str
    event_type: str
    event_schema_version: str
    sha256: str
    algorithm: str
    set_version: str
    set_digest: str


def acknowledged_have_receipts() -> Tally:
    """Look up and prove the receipt of every acknowledged delivery."""
    tally = Tally()
    for name, alias in PRODUCERS:
        for destination in _destinations(alias):
            bound = consumer_for(destination)
            consumer_alias = bound[0].read_alias if bound else alias
            with snapshots(alias, consumer_alias) as (producer, consumer):
                for delivery, problem in _problems(producer, consumer, tally, name=name, destination=destination):
                    tally.found(name, f"{delivery.event_id} to {destination}", problem)
    return tally


def _destinations(alias: str) -> list[str]:
    with snapshots(alias) as (database,):
        return [row[0] for row in database.rows("SELECT DISTINCT destination FROM delivery_set_members")]


def _problems(
    producer: Snapshot, consumer: Snapshot, tally: Tally, *, name: str, destination: str
) -> Iterator[tuple[Acknowledged, str]]:
    for batch in producer.stream(f"{ACKNOWLEDGED} AND d.destination = %s", [destination]):
        tally.examined += len(batch)
        deliveries = [Acknowledged(*row) for row in batch]
        receipts = _receipts(consumer, deliveries)
        for delivery in deliveries:
            found = receipts.get((delivery.event_id, delivery.ack_receipt_ref))
            problem = _problem(delivery, found, name)
            if problem:
                yield delivery, problem


def _receipts(consumer: Snapshot, deliveries: Sequence[Acknowledged]) -> dict[tuple[str, str], Row]:
    events: dict[str, list[str]] = defaultdict(list)
    for delivery in deliveries:
        if delivery.expected_receipt_type in RECEIPTS:
            events[delivery.expected_receipt_type].append(delivery.event_id)
    return {(row[0], row[1]): row[2:] for kind, ids in events.items() for row in consumer.rows(RECEIPTS[kind], [ids])}


def _problem(delivery: Acknowledged, found: Row | None, producer: str) -> str | None:
    if delivery.expected_receipt_type not in RECEIPTS:
        return f"this release does not know where {delivery.expected_receipt_type} is stored"
    if found is None:
        return f"its consumer's owner has no receipt {delivery.ack_receipt_ref}"
    body, *frozen = found
    try:
        contract = receipt_of(delivery.expected_receipt_type, delivery.expected_receipt_schema_version)
        receipt = contract.from_wire(orjson.loads(body)).ensure_digest()
    except (UnknownReceipt, ContractViolation) as error:
        return f"its receipt does not recompute: {error}"
    if frozen != [producer, delivery.set_version, delivery.set_digest]:
        return "its receipt was given to another producer or definition"
    return _difference(delivery, receipt)


def _difference(delivery: Acknowledged, receipt: ContentAddressed) -> str | None:
    own = receipt.reference
    pairs = (
        ("consumer of the ack", delivery.ack_consumer_name, delivery.consumer_name),
        ("type of the ack", delivery.ack_receipt_type, delivery.expected_receipt_type),
        ("receipt reference", delivery.ack_receipt_ref, own.ref),
        ("receipt schema version", delivery.ack_receipt_schema_version, own.schema_version),
        ("receipt digest algorithm", delivery.ack_receipt_algorithm, own.digest_algorithm_version),
        ("receipt digest", delivery.ack_receipt_digest, own.digest),
        ("envelope digest of the ack", delivery.ack_sha256, delivery.sha256),
        ("digest algorithm of the ack", delivery.ack_algorithm, delivery.algorithm),
        ("event", getattr(receipt, "event_id", None), delivery.event_id),
        ("destination", getattr(receipt, "destination", None), delivery.destination),
        ("consumer", getattr(receipt, "consumer_name", None), delivery.consumer_name),
        ("envelope digest", getattr(receipt, "event_envelope_sha256", None), delivery.sha256),
        ("event type", getattr(receipt, "event_type", delivery.event_type), delivery.event_type),
        (
            "event schema version",
            getattr(receipt, "event_schema_version", delivery.event_schema_version),
            delivery.event_schema_version,
        ),
        ("projection", getattr(receipt, "projection_name", None), delivery.projection_name),
        ("projection version", getattr(receipt, "projection_version", None), delivery.projection_version),
    )
    return next((f"the {what} is {said!r}, not {due!r}" for what, said, due in pairs if said != due), None)


CHECKS = (
    Check(
        "acknowledged_receipt",
        "Each acknowledged delivery has a receipt at its consumer's owner that recomputes and matches it.",
        acknowledged_have_receipts,
    ),
)
