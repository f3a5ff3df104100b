"""Verify and deliver one claimed batch, outside any transaction, and judge what came back (O20, O21).

Before: the stored bytes must hash to the stored digest. After: what `accept.py` does not accept is a retryable
`ack_rejected` with an alarm, never a quarantine: the consumer may be at fault, the event is not.
"""

from collections.abc import Sequence

import structlog

from outbox import metrics
from outbox.accept import AckRejected, accept
from outbox.contracts.canonical import sha256_hex
from outbox.contracts.delivery import Acknowledged, DeliveryRequest, NonRetryable, Retryable, RetryClass, Verdict
from outbox.contracts.question import dispatcher_workload
from outbox.retry import classify, policy, sanitise
from outbox.rows import Ack, Claimed, Quarantine, Retry, Settlement
from outbox.transport import NotBound, Pass, Transport, delivery_scope

log = structlog.get_logger("outbox.deliver")


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
