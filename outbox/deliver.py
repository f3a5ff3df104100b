"""Verify and deliver one claimed batch, outside any transaction, and judge what came back (O20, O21).

Before: the stored bytes must hash to the stored digest. After: an ack is accepted only if every coordinate equals the
frozen member, and the receipt's own content recomputes to the digest it is named by. An ack that is not accepted is a
retryable `ack_rejected` with an alarm, never a quarantine: the consumer may be at fault, the event is not.
"""

from collections.abc import Sequence

import structlog

from outbox import metrics
from outbox.contracts.ack import ActiveConsumerAck
from outbox.contracts.canonical import sha256_hex
from outbox.contracts.contract import ContentReference, ContractViolation
from outbox.contracts.delivery import Acknowledged, DeliveryRequest, NonRetryable, Retryable, RetryClass, Verdict
from outbox.contracts.destinations import RULES
from outbox.contracts.question import dispatcher_workload
from outbox.contracts.receipt import UnknownReceipt, receipt_of
from outbox.retry import classify, policy, sanitise
from outbox.rows import Ack, Claimed, Quarantine, Retry, Settlement
from outbox.transport import NotBound, Pass, Transport, delivery_scope

log = structlog.get_logger("outbox.deliver")


class AckRejected(ContractViolation):
    """The answer does not prove what the frozen member demands. The delivery is tried again, with an alarm."""


def deliver(batch: Sequence[Claimed], *, producer: str, destination: str, transport: Transport) -> Settlement:
    """One batch of one destination: a verdict for each of its deliveries. Never raises for what a consumer does."""
    settlement = Settlement()
    sound = []
    for claimed in batch:
        if sha256_hex(claimed.envelope) == claimed.envelope_sha256:
            sound.append(claimed)
        else:
            settlement.quarantines.append(
                Quarantine(claimed, "envelope_digest_mismatch", "The stored bytes do not hash to the stored digest.")
            )
    if not sound:
        return settlement
    requests = [_request(claimed, producer) for claimed in sound]
    access = Pass(workload=dispatcher_workload(producer), audience=destination, scope=delivery_scope(requests))
    try:
        verdicts: Sequence[Verdict] = transport.deliver(requests, access=access)
    except NotBound as error:
        verdicts = [Retryable(RetryClass.CAPACITY, "consumer_unbound", sanitise(error))] * len(sound)
    except Exception as error:  # whatever a consumer raises becomes a visible, classified retry
        retry_class, code, detail = classify(error)
        log.warning("delivery_raised", producer=producer, destination=destination, code=code, count=len(sound))
        verdicts = [Retryable(retry_class, code, detail)] * len(sound)
    for claimed, verdict in zip(sound, verdicts, strict=True):
        _judge(claimed, verdict, settlement, producer)
    return settlement


def _request(claimed: Claimed, producer: str) -> DeliveryRequest:
    return DeliveryRequest(
        event_id=claimed.event_id,
        envelope=claimed.envelope,
        digest_algorithm_version=claimed.digest_algorithm_version,
        envelope_sha256=claimed.envelope_sha256,
        aggregate_id=claimed.aggregate_id,
        aggregate_revision=claimed.aggregate_revision,
        member=claimed.member,
        producer=producer,
    )


def _judge(claimed: Claimed, verdict: Verdict, settlement: Settlement, producer: str) -> None:
    if isinstance(verdict, Acknowledged):
        try:
            receipt = accept(claimed, verdict)
        except AckRejected as error:
            metrics.ack_rejected(producer, claimed.member.destination, "mismatch", 1)
            log.error("ack_rejected", producer=producer, destination=claimed.member.destination, reason=str(error))
            settlement.retries.append(retry(claimed, RetryClass.TRANSIENT, "ack_rejected", str(error)))
        else:
            settlement.acks.append(Ack(claimed, verdict.ack, receipt))
    elif isinstance(verdict, NonRetryable):
        settlement.quarantines.append(Quarantine(claimed, verdict.code, sanitise(verdict.detail)))
    else:
        settlement.retries.append(retry(claimed, verdict.retry_class, verdict.code, verdict.detail))


def retry(claimed: Claimed, retry_class: RetryClass, code: str, detail: str) -> Retry:
    """The retry that the class's policy prescribes after this attempt."""
    delay = policy(retry_class.value).delay(claimed.attempt_count)
    return Retry(claimed, retry_class.value, code, sanitise(detail), delay)


def accept(claimed: Claimed, verdict: Acknowledged) -> ContentReference:
    """The receipt's four-tuple, proven against the frozen member. Raises `AckRejected` naming the first difference."""
    member, ack = claimed.member, verdict.ack
    rule = RULES[member.destination]
    _same("ack destination", ack.destination, member.destination)
    _same("ack consumer", ack.consumer_name, member.consumer_name)
    _same("ack receipt branch", ack.applied_receipt.kind, rule.ack_kind)
    _envelope_matches("ack", claimed, ack)
    try:
        contract = receipt_of(member.expected_receipt_type, member.expected_receipt_schema_version)
        receipt = contract.parse(verdict.receipt)
    except (UnknownReceipt, ContractViolation) as error:
        raise AckRejected(f"The receipt cannot be proven: {error}") from error
    named, own = ack.applied_receipt.receipt, receipt.reference
    _same("receipt schema version", own.schema_version, member.expected_receipt_schema_version)
    if named != own:
        raise AckRejected("The ack names another receipt than the one that came with it.")
    _same("receipt destination", getattr(receipt, "destination", None), member.destination)
    _same("receipt consumer", getattr(receipt, "consumer_name", None), member.consumer_name)
    _envelope_matches("receipt", claimed, receipt)
    _same("receipt event type", getattr(receipt, "event_type", member.event_type), member.event_type)
    _same(
        "receipt event schema version",
        getattr(receipt, "event_schema_version", member.event_schema_version),
        member.event_schema_version,
    )
    _same("receipt projection name", getattr(receipt, "projection_name", None), member.projection_name)
    _same("receipt projection version", getattr(receipt, "projection_version", None), member.projection_version)
    return own


def _envelope_matches(what: str, claimed: Claimed, answer: "ActiveConsumerAck | object") -> None:
    _same(f"{what} event", getattr(answer, "event_id", None), claimed.event_id)
    _same(f"{what} envelope digest", getattr(answer, "event_envelope_sha256", None), claimed.envelope_sha256)
    _same(
        f"{what} digest algorithm",
        getattr(answer, "event_envelope_digest_algorithm_version", None),
        claimed.digest_algorithm_version,
    )


def _same(what: str, answered: object, expected: object) -> None:
    if answered != expected:
        raise AckRejected(f"The {what} is {answered!r}, the frozen member demands {expected!r}.")
