"""Accept an event once, and count it once (C3, C4, A1, A2).

One business transaction: take the event's turn, look whether it is known, and only for a new one ask for quota and
store it. Whoever sends the same id meanwhile waits for its turn and then sees what was committed. A replay gets the
answer of the first time, and asks for no quota; another payload under a known id is recorded, and conflicts.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, cast
from uuid import UUID

from uuid_utils.compat import uuid7

from attachments.connectors.authenticate import Delivery
from attachments.connectors.errors import PayloadConflict
from attachments.connectors.turn import take_turn
from billing.commercial import hooks
from config.owners import owner_named
from outbox.raw import raw_cursor
from outbox.steps import reach

ALIAS = owner_named("attachments").alias
TOOL, DIMENSION = "connector", "financial.ingest"

KNOWN = """
SELECT event_id, accepted_at, body_sha256 FROM financial_connector_events WHERE webhook_id = %s AND connector_id = %s
"""
STORE = """
INSERT INTO financial_connector_events (event_id, connector_id, webhook_id, body, body_bytes, body_sha256, sent_at,
                                        secret_id)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING accepted_at
"""
CONFLICT = """
INSERT INTO financial_connector_conflicts (conflict_id, event_id, body_bytes, body_sha256, sent_at, secret_id)
VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (event_id, body_sha256) DO NOTHING
"""


class Outcome(StrEnum):
    """What became of an authenticated delivery that was not refused."""

    ACCEPTED = "accepted"
    """The event is new: stored, and counted where a meter counts it."""
    REPLAYED = "replayed"
    """It was accepted before: nothing changed."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """The event that stands for this delivery. Only `outcome` tells the first delivery from its repetitions."""

    outcome: Outcome
    event_id: UUID
    accepted_at: datetime


@dataclass(frozen=True, slots=True)
class _Known:
    event_id: UUID
    accepted_at: datetime
    body_sha256: str


def ingest(delivery: Delivery, *, at: datetime) -> Ingested:
    """Accept the event of this delivery, or find that it was accepted before. Call it outside any transaction.

    Raises `PayloadConflict` after the conflict is committed, `hooks.QuotaExceeded` and every other `CommercialError`
    with nothing stored, or a database error.
    """
    signed, body_sha256 = delivery.signed, hashlib.sha256(delivery.signed.body).hexdigest()
    with hooks.business_transaction(using=ALIAS) as work:
        take_turn(ALIAS, "event of connector", delivery.connector_id, signed.webhook_id)
        reach("connectors.turn")
        known = _known(delivery)
        if known is None:
            work.reserve(_operation_of(delivery, body_sha256), quantity=1, at=at)
            stored = _store(delivery, body_sha256)
            reach("connectors.stored")
        elif known.body_sha256 != body_sha256:
            _record_conflict(delivery, known, body_sha256)
    if known is None:
        return stored
    if known.body_sha256 != body_sha256:
        raise PayloadConflict(PayloadConflict.__doc__)
    return Ingested(Outcome.REPLAYED, known.event_id, known.accepted_at)


def operation(
    *,
    tenant_kind: str,
    tenant_id: str,
    provider_code: str,
    configuration_digest: str,
    webhook_id: str,
    body_sha256: str,
) -> hooks.Operation:
    """Who does what: the tenant and the digest of the configuration, and the fingerprint of the request."""
    return hooks.Operation(
        tenant_kind=cast(Literal["organization", "personal"], tenant_kind),
        tenant_id=tenant_id,
        tool=TOOL,
        dimension=DIMENSION,
        quantity_basis="events",
        identity=(configuration_digest, request_fingerprint(webhook_id=webhook_id, body_sha256=body_sha256)),
        provider_code=provider_code,
    )


def request_fingerprint(*, webhook_id: str, body_sha256: str) -> str:
    """What was delivered, whenever and with whatever signature: 64 hex digits."""
    return hashlib.sha256(json.dumps([webhook_id, body_sha256], separators=(",", ":")).encode()).hexdigest()


def _operation_of(delivery: Delivery, body_sha256: str) -> hooks.Operation:
    return operation(
        tenant_kind=delivery.tenant_kind,
        tenant_id=delivery.tenant_id,
        provider_code=delivery.provider_code,
        configuration_digest=delivery.configuration_digest,
        webhook_id=delivery.signed.webhook_id,
        body_sha256=body_sha256,
    )


def _known(delivery: Delivery) -> _Known | None:
    with raw_cursor(ALIAS) as cursor:
        found = cursor.execute(KNOWN, (delivery.signed.webhook_id, delivery.connector_id)).fetchone()
    return _Known(*found) if found else None


def _store(delivery: Delivery, body_sha256: str) -> Ingested:
    signed, event_id = delivery.signed, uuid7()
    values = (
        event_id, delivery.connector_id, signed.webhook_id, signed.body, len(signed.body), body_sha256,
        signed.sent_at, delivery.secret_id,
    )  # fmt: skip
    with raw_cursor(ALIAS) as cursor:
        row = cursor.execute(STORE, values).fetchone()
    if row is None:
        raise LookupError("The event that was stored has no time.")
    return Ingested(Outcome.ACCEPTED, event_id, row[0])


def _record_conflict(delivery: Delivery, known: _Known, body_sha256: str) -> None:
    signed = delivery.signed
    values = (uuid7(), known.event_id, len(signed.body), body_sha256, signed.sent_at, delivery.secret_id)
    with raw_cursor(ALIAS) as cursor:
        cursor.execute(CONFLICT, values)
