"""Append events inside the owner's business transaction (O5, O9).

One statement reads the active delivery-set definition, inserts the events with its four-tuple, and inserts exactly
their mandatory delivery rows; the database proves digest, columns and set, the last of them at commit. Activation of a
definition excludes this statement, so every event freezes the definition that was active when it was written.

After the commit one wake-up for the owner's dispatcher is sent; if it is lost, the beat finds the deliveries.
"""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal, NamedTuple

from django.db import IntegrityError, connections, transaction
from uuid_utils.compat import uuid7

from config.owners import owner_of_alias, producer_of
from outbox.contracts.canonical import sha256_hex
from outbox.contracts.contract import Contract, describe, timestamp
from outbox.contracts.delivery_set import DeliverySetDefinition
from outbox.contracts.envelope import envelope_around, payload_contract
from outbox.contracts.first_release import ROUTES
from outbox.models import DeliverySetVersion
from outbox.nudge import nudge_after_commit
from outbox.raw import raw_cursor
from outbox.text_array import texts, words

MAX_APPEND = 1000
"""Events in one call: bounds the statement's memory on both sides (about 2 MB)."""
MAX_ENVELOPE_BYTES = 256 * 1024
"""An event names facts, it does not carry documents."""


class AppendRefused(Exception):
    """The event cannot be appended; the message says why. Permanent for this event: the transaction rolls back."""


class NotInTransaction(AppendRefused):
    """Append inside `transaction.atomic(using=…)` of the owner's alias, together with the fact the event reports."""


class WrongProducer(AppendRefused):
    """The event type belongs to another owner, or to none. Append it at its owner's alias."""


class NotCovered(AppendRefused):
    """The active definition lacks this pair or one of its mandatory members. Register and activate a complete one."""


class DuplicateEvent(AppendRefused):
    """This fact (aggregate, event type, revision) or this event id has its event already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event to append. `payload` is an instance of the contract registered for its exact type and version."""

    event_type: str
    event_schema_version: str
    aggregate_id: str
    aggregate_revision: int
    tenant_kind: Literal["organization", "personal"]
    tenant_id: str
    workspace_id: str
    correlation_id: str
    operation_id: str
    occurred_at: datetime
    payload: Contract
    project_id: str | None = None
    causation_id: str | None = None
    event_id: uuid.UUID | None = None
    """Allocate ids with `new_event_id` where one event of a transaction names another as its cause."""


CARRIED = tuple(field.name for field in fields(Event) if field.name not in {"payload", "event_id", "occurred_at"})
"""What the envelope takes over from the event as it stands."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What was written for one event."""

    event_id: uuid.UUID
    envelope_sha256: str


def new_event_id() -> uuid.UUID:
    """A UUIDv7, so that ids sort by time."""
    return uuid7()


def append(event: Event, *, using: str) -> Appended:
    """Append one event. Raises `AppendRefused` (its subclasses say what to do)."""
    return append_many([event], using=using)[0]


def append_many(events: Sequence[Event], *, using: str) -> list[Appended]:
    """Append up to `MAX_APPEND` events in one statement; all or none. Raises `AppendRefused`."""
    if not events:
        return []
    if len(events) > MAX_APPEND:
        raise AppendRefused(f"{len(events)} events in one call; append at most {MAX_APPEND}.")
    if not connections[using].in_atomic_block:
        raise NotInTransaction(f"No transaction is open on {using!r}. {NotInTransaction.__doc__}")
    _ensure_producer(events, using)
    written = [_write(event) for event in events]
    try:
        with raw_cursor(using) as cursor:
            cursor.execute(APPEND, _arrays(events, written))
            rows = cursor.fetchall()
    except IntegrityError as error:
        _translate(error)
        raise
    _ensure_covered(events, rows, using)
    nudge_after_commit(using=using)
    return [Appended(one.event_id, one.sha256) for one in written]


APPEND = """
WITH active AS (
    SELECT delivery_set_version, delivery_set_definition_schema_version,
           delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest
      FROM delivery_set_versions WHERE status = 'active'
), events AS (
    INSERT INTO outbox_events (
        event_id, event_type, schema_version, aggregate_id, aggregate_revision, tenant_kind, tenant_id, workspace_id,
        project_id, correlation_id, causation_id, operation_id, event_envelope, event_envelope_sha256, occurred_at,
        event_envelope_digest_algorithm_version, delivery_set_version, delivery_set_definition_schema_version,
        delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest)
    SELECT input.*, 'jcs-sha256-v1', active.*
      FROM unnest(
               %s::uuid[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[],
               %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::timestamptz[]) input
     CROSS JOIN active
    RETURNING event_id, event_type, schema_version, delivery_set_version
), deliveries AS (
    INSERT INTO outbox_deliveries (
        event_id, destination, delivery_set_version, event_type, schema_version, consumer_name, mandatory,
        expected_receipt_type, expected_receipt_schema_version, required_projection_name, required_projection_version)
    SELECT events.event_id, m.destination, m.delivery_set_version, m.event_type, m.schema_version, m.consumer_name,
           m.mandatory, m.expected_receipt_type, m.expected_receipt_schema_version, m.projection_name,
           m.projection_version
      FROM events JOIN delivery_set_members m USING (delivery_set_version, event_type, schema_version)
     WHERE m.mandatory
    RETURNING event_type, schema_version, destination
)
SELECT d.event_type, d.schema_version, d.destination, count(*), (SELECT count(*) FROM events)
  FROM deliveries d GROUP BY 1, 2, 3
"""
"""The columns travel beside the envelope; the guards of the table prove that they say what it says."""


def _ensure_producer(events: Sequence[Event], using: str) -> None:
    owner = owner_of_alias(using)
    for event_type in {event.event_type for event in events}:
        producer = producer_of(event_type)
        if producer is None:
            raise WrongProducer(f"No owner produces {event_type!r}: it is not an exact event type of config/owners.py.")
        if producer is not owner or using != owner.alias:
            raise WrongProducer(f"{event_type!r} is appended at alias {producer.alias!r}, not at {using!r}.")


class _Written(NamedTuple):
    event_id: uuid.UUID
    occurred_at: str
    envelope: bytes
    sha256: str


def _write(event: Event) -> _Written:
    contract = payload_contract(event.event_type, event.event_schema_version)
    if type(event.payload) is not contract:
        raise AppendRefused(
            f"The payload of {event.event_type!r} is a {contract.__name__}, not a {type(event.payload).__name__}."
        )
    event_id = event.event_id or new_event_id()
    try:
        occurred_at = timestamp(event.occurred_at)
        carried: dict[str, Any] = {name: getattr(event, name) for name in CARRIED}
        carried["event_id"], carried["occurred_at"] = str(event_id), occurred_at
        envelope = envelope_around(event.payload, carried)
    except ValueError as error:
        raise AppendRefused(f"{event.event_type}: {describe(error)}") from error
    if len(envelope) > MAX_ENVELOPE_BYTES:
        raise AppendRefused(f"{event.event_type}: {len(envelope)} bytes; an envelope has at most {MAX_ENVELOPE_BYTES}.")
    return _Written(event_id, occurred_at, envelope, sha256_hex(envelope))


def _arrays(events: Sequence[Event], written: Sequence[_Written]) -> list[str]:
    return [
        words([str(one.event_id) for one in written]),
        texts([event.event_type for event in events]),
        texts([event.event_schema_version for event in events]),
        texts([event.aggregate_id for event in events]),
        words([str(event.aggregate_revision) for event in events]),
        texts([event.tenant_kind for event in events]),
        texts([event.tenant_id for event in events]),
        texts([event.workspace_id for event in events]),
        texts([event.project_id for event in events]),
        texts([event.correlation_id for event in events]),
        texts([event.causation_id for event in events]),
        texts([event.operation_id for event in events]),
        texts([one.envelope.decode() for one in written]),
        words([one.sha256 for one in written]),
        words([one.occurred_at for one in written]),
    ]


def required_destinations(event_type: str) -> frozenset[str]:
    """The destinations without which an event of the first release must not be written (O7, O9)."""
    return frozenset(dict(ROUTES).get(event_type, ()))


def _ensure_covered(events: Sequence[Event], rows: Sequence[tuple[str, str, str, int, int]], using: str) -> None:
    written = {(event_type, version, destination): count for event_type, version, destination, count, _ in rows}
    for (event_type, version), count in Counter((e.event_type, e.event_schema_version) for e in events).items():
        present = {key[2] for key, rows_of in written.items() if key[:2] == (event_type, version) and rows_of == count}
        missing = required_destinations(event_type) - present
        if missing or not present:
            transaction.set_rollback(True, using=using)
            raise NotCovered(
                f"The active definition at {using!r} lacks {event_type!r} {version!r}"
                f"{' to ' + ', '.join(sorted(missing)) if missing else ''}. {NotCovered.__doc__}"
            )


def _translate(error: IntegrityError) -> None:
    name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) or ""
    if name in {"outbox_event_one_per_fact", "outbox_events_pkey"}:
        raise DuplicateEvent(f"{DuplicateEvent.__doc__} ({name})") from error


def ensure_covered(event_type: str, event_schema_version: str, *, using: str) -> DeliverySetDefinition:
    """Prove before a fact is written that the active definition covers the event (O9). Raises `NotCovered`."""
    row = DeliverySetVersion.objects.using(using).filter(status="active").first()
    definition = DeliverySetDefinition.parse(row.definition.encode()) if row else None
    members = definition.members_of(event_type, event_schema_version) if definition else ()
    present = {member.destination for member in members if member.mandatory}
    if definition is None or not present or required_destinations(event_type) - present:
        raise NotCovered(f"{event_type!r} {event_schema_version!r} at {using!r}: {NotCovered.__doc__}")
    return definition
