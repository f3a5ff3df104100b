"""Settle a batch in one short transaction: finishes, states, quarantine, publishing (O18, O19, O20).

Every statement is fenced by (event, destination, attempt, token): a row that changed hands changes nothing and comes
back as fenced. The statements filter neither on the status nor on `lease_owner IS NOT NULL`: statistics taken while
nothing is leased make the planner start from those few rows, by a partial index full of dead entries or a scan of the
table, instead of the key. `coalesce(lease_owner, '') <> ''` says the same and hides it from the statistics.

When the database finds one acknowledgement invalid, the transaction rolls back and the batch is settled row by row: the
neighbours settle, the invalid row is tried again as `ack_rejected`, with an alarm.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import structlog

from outbox import metrics, steps
from outbox.contracts.delivery import RetryClass
from outbox.deliver import retry
from outbox.retry import NOT_THE_EVENT, policy
from outbox.rows import Ack, Claimed, Quarantine, Retry, Settlement
from outbox.text_array import texts, words

log = structlog.get_logger("outbox.settle")

INVALID = "OB001"

ACKNOWLEDGE = """
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[], %s::text[], %s::text[], %s::text[])
                  i (event_id, attempt_id, token, ref, digest, envelope_sha256)
), done AS (
    UPDATE outbox_deliveries d
       SET status = 'acknowledged', delivered_at = now(), lease_owner = NULL, lease_expires_at = NULL,
           last_error_code = NULL, last_error_ref = NULL, ack_consumer_name = %s, ack_receipt_type = %s,
           ack_receipt_ref = i.ref, ack_receipt_schema_version = %s, ack_receipt_digest_algorithm_version = %s,
           ack_receipt_digest = i.digest, ack_event_envelope_digest_algorithm_version = 'jcs-sha256-v1',
           ack_event_envelope_sha256 = i.envelope_sha256
      FROM input i
     WHERE d.event_id = i.event_id AND d.destination = %s AND coalesce(d.lease_owner, '') <> ''
       AND d.current_attempt_id = i.attempt_id AND d.lease_token = i.token
    RETURNING i.attempt_id
), finished AS (
    INSERT INTO outbox_delivery_attempt_finishes (attempt_id, outcome, retry_disposition)
    SELECT attempt_id, 'acknowledged', 'complete' FROM done
)
SELECT attempt_id::text FROM done
"""

RETRY = """
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::float8[])
                  i (event_id, attempt_id, token, retry_class, code, detail, delay)
), done AS (
    UPDATE outbox_deliveries d
       SET status = 'pending', available_at = clock_timestamp() + i.delay * interval '1 second', lease_owner = NULL,
           lease_expires_at = NULL, last_error_code = i.code, last_error_ref = nullif(i.detail, '')
      FROM input i
     WHERE d.event_id = i.event_id AND d.destination = %s AND coalesce(d.lease_owner, '') <> ''
       AND d.current_attempt_id = i.attempt_id AND d.lease_token = i.token
    RETURNING i.*
), finished AS (
    INSERT INTO outbox_delivery_attempt_finishes
           (attempt_id, outcome, retry_disposition, retry_class, normalized_error_code, sanitized_error_ref)
    SELECT attempt_id, 'retryable', 'retry', retry_class, code, nullif(detail, '') FROM done
)
SELECT attempt_id::text FROM done
"""

QUARANTINE = """
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[], %s::text[], %s::text[], %s::text[])
                  i (event_id, attempt_id, token, retry_class, code, detail)
), done AS (
    UPDATE outbox_deliveries d
       SET status = 'quarantined', lease_owner = NULL, lease_expires_at = NULL, last_error_code = i.code,
           last_error_ref = nullif(i.detail, '')
      FROM input i
     WHERE d.event_id = i.event_id AND d.destination = %s AND coalesce(d.lease_owner, '') <> ''
       AND d.current_attempt_id = i.attempt_id AND d.lease_token = i.token
    RETURNING i.*, d.event_type, d.schema_version
), finished AS (
    INSERT INTO outbox_delivery_attempt_finishes
           (attempt_id, outcome, retry_disposition, retry_class, normalized_error_code, sanitized_error_ref)
    SELECT attempt_id, CASE retry_class WHEN '' THEN 'non_retryable' ELSE 'retryable' END, 'quarantine',
           nullif(retry_class, ''), code, nullif(detail, '') FROM done
), visible AS (
    INSERT INTO outbox_quarantine
           (event_id, destination, attempt_id, event_type, schema_version, reason, detail,
            event_envelope_digest_algorithm_version, event_envelope_sha256)
    SELECT done.event_id, %s, attempt_id, done.event_type, done.schema_version, code, nullif(detail, ''),
           e.event_envelope_digest_algorithm_version, e.event_envelope_sha256
      FROM done JOIN outbox_events e ON e.event_id = done.event_id
)
SELECT attempt_id::text FROM done
"""

PUBLISH = "SELECT verdict, count(*) FROM outbox_publish(%s::uuid[]) GROUP BY 1"

SPENT = """
SELECT a.attempt_id::text
  FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::int[]) a (event_id, attempt_id, retry_class, allowed)
 WHERE (SELECT count(*) FROM outbox_delivery_attempt_starts s JOIN outbox_delivery_attempt_finishes f USING (attempt_id)
         WHERE s.event_id = a.event_id AND s.destination = %s AND f.retry_class = a.retry_class
           AND f.normalized_error_code <> ALL (%s)) + 1 >= a.allowed
"""


@dataclass(slots=True)
class Settled:
    """What a settle changed."""

    acknowledged: int = 0
    retried: int = 0
    quarantined: int = 0
    complete: int = 0
    not_complete: int = 0
    fenced: list[Claimed] = field(default_factory=list)
    """Deliveries that belong to another attempt by now; their late result changed nothing."""


def settle(
    connection: psycopg.Connection[tuple[Any, ...]], settlement: Settlement, *, producer: str, destination: str
) -> Settled:
    """Settle every delivery of one batch of one destination. Raises only what the database raises (then nothing is)."""
    _exhaust(connection, settlement, destination)
    try:
        settled = _settle_once(connection, settlement, destination)
    except psycopg.DatabaseError as error:
        if error.sqlstate != INVALID:
            raise
        settled = _row_by_row(connection, settlement, producer, destination)
    _count(settled, settlement, producer, destination)
    return settled


def _settle_once(connection: psycopg.Connection[tuple[Any, ...]], settlement: Settlement, destination: str) -> Settled:
    settled, changed = Settled(), set[str]()
    with connection.transaction(), connection.cursor() as cursor:
        if settlement.acks:
            acknowledged = _run(cursor, ACKNOWLEDGE, _ack_values(settlement.acks, destination))
            settled.acknowledged = len(acknowledged)
            changed |= acknowledged
            if acknowledged:
                cursor.execute(PUBLISH, [words(sorted(acknowledged))])
                verdicts = dict(cursor.fetchall())
                settled.complete = verdicts.get("complete", 0)
                settled.not_complete = verdicts.get("not_complete", 0)
        if settlement.retries:
            retried = _run(cursor, RETRY, _retry_values(settlement.retries, destination))
            settled.retried = len(retried)
            changed |= retried
        if settlement.quarantines:
            quarantined = _run(cursor, QUARANTINE, _quarantine_values(settlement.quarantines, destination))
            settled.quarantined = len(quarantined)
            changed |= quarantined
        steps.reach("in_settle")
    settled.fenced = [claimed for claimed in settlement.claimed() if claimed.attempt_id not in changed]
    return settled


def _row_by_row(
    connection: psycopg.Connection[tuple[Any, ...]], settlement: Settlement, producer: str, destination: str
) -> Settled:
    total = _settle_once(
        connection, Settlement(retries=settlement.retries, quarantines=settlement.quarantines), destination
    )
    for ack in settlement.acks:
        try:
            one = _settle_once(connection, Settlement(acks=[ack]), destination)
        except psycopg.DatabaseError as error:
            if error.sqlstate != INVALID:
                raise
            log.error("settle_invalid", producer=producer, destination=destination, event_id=ack.claimed.event_id)
            metrics.ack_rejected(producer, destination, "invalid", 1)
            again = retry(ack.claimed, RetryClass.TRANSIENT, "ack_rejected", "The database found the ack invalid.")
            one = _settle_once(connection, Settlement(retries=[again]), destination)
        total.acknowledged += one.acknowledged
        total.retried += one.retried
        total.complete += one.complete
        total.not_complete += one.not_complete
        total.fenced += one.fenced
    return total


def _run(cursor: psycopg.Cursor[tuple[Any, ...]], statement: str, values: Sequence[object]) -> set[str]:
    cursor.execute(statement, values)
    return {row[0] for row in cursor.fetchall()}


def _exhaust(connection: psycopg.Connection[tuple[Any, ...]], settlement: Settlement, destination: str) -> None:
    """Turn retries whose class may quarantine, and has been tried often enough, into quarantines."""
    limits = {name: policy(name).quarantine_after for name in {entry.retry_class for entry in settlement.retries}}
    suspects = [
        entry
        for entry in settlement.retries
        if (limit := limits[entry.retry_class]) and entry.claimed.attempt_count >= limit
        and entry.code not in NOT_THE_EVENT
    ]  # fmt: skip
    if not suspects:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            SPENT,
            [
                words([entry.claimed.event_id for entry in suspects]),
                words([entry.claimed.attempt_id for entry in suspects]),
                texts([entry.retry_class for entry in suspects]),
                words([str(limits[entry.retry_class]) for entry in suspects]),
                destination,
                sorted(NOT_THE_EVENT),
            ],
        )
        spent = {row[0] for row in cursor.fetchall()}
    for entry in [entry for entry in suspects if entry.claimed.attempt_id in spent]:
        settlement.retries.remove(entry)
        detail = f"{entry.code}: {entry.detail}"[:1000]
        settlement.quarantines.append(Quarantine(entry.claimed, "attempts_exhausted", detail, entry.retry_class))


def _fence(rows: Sequence[Claimed]) -> list[object]:
    return [
        words([row.event_id for row in rows]),
        words([row.attempt_id for row in rows]),
        words([str(row.lease_token) for row in rows]),
    ]


def _ack_values(acks: Sequence[Ack], destination: str) -> list[object]:
    member = acks[0].claimed.member
    return [
        *_fence([ack.claimed for ack in acks]),
        texts([ack.receipt.ref for ack in acks]),
        words([ack.receipt.digest for ack in acks]),
        words([ack.claimed.envelope_sha256 for ack in acks]),
        member.consumer_name,
        member.expected_receipt_type,
        acks[0].receipt.schema_version,
        acks[0].receipt.digest_algorithm_version,
        destination,
    ]


def _retry_values(retries: Sequence[Retry], destination: str) -> list[object]:
    return [
        *_fence([entry.claimed for entry in retries]),
        texts([entry.retry_class for entry in retries]),
        texts([entry.code for entry in retries]),
        texts([entry.detail for entry in retries]),
        words([f"{entry.delay:.6f}" for entry in retries]),
        destination,
    ]


def _quarantine_values(quarantines: Sequence[Quarantine], destination: str) -> list[object]:
    return [
        *_fence([entry.claimed for entry in quarantines]),
        texts([entry.retry_class or "" for entry in quarantines]),
        texts([entry.code for entry in quarantines]),
        texts([entry.detail for entry in quarantines]),
        destination,
        destination,
    ]


def _count(settled: Settled, settlement: Settlement, producer: str, destination: str) -> None:
    metrics.acknowledged(producer, destination, settled.acknowledged)
    metrics.published(producer, settled.complete, settled.not_complete)
    if settled.fenced:
        metrics.fenced(producer, destination, len(settled.fenced))
        for claimed in settled.fenced:
            log.warning(
                "late_result_fenced",
                producer=producer,
                destination=destination,
                event_id=claimed.event_id,
                attempt_id=claimed.attempt_id,
            )
    fenced = {claimed.attempt_id for claimed in settled.fenced}
    for (event_type, version, code), count in _kinds(settlement.retries, fenced).items():
        metrics.retried(producer, destination, event_type=event_type, schema_version=version, code=code, count=count)
    for (event_type, version, code), count in _kinds(settlement.quarantines, fenced).items():
        metrics.quarantined(
            producer, destination, event_type=event_type, schema_version=version, reason=code, count=count
        )
    for gone in settlement.quarantines:
        if gone.claimed.attempt_id not in fenced:
            log.error(
                "delivery_quarantined",
                producer=producer,
                destination=destination,
                event_id=gone.claimed.event_id,
                reason=gone.code,
            )


def _kinds(entries: Sequence[Retry] | Sequence[Quarantine], fenced: set[str]) -> Counter[tuple[str, str, str]]:
    """How many of each (event type, schema version, code) the settle changed."""
    return Counter(
        (entry.claimed.member.event_type, entry.claimed.member.event_schema_version, entry.code)
        for entry in entries
        if entry.claimed.attempt_id not in fenced
    )
