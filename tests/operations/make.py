"""Consistent admissions, their events and the deliveries of them; and what the projection says afterwards."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connections
from uuid_utils import uuid7

from operations.projector.consumer import consume
from outbox.contracts.canonical import sha256_hex
from outbox.contracts.contract import ContentReference, Contract
from outbox.contracts.delivery import Acknowledged, DeliveryRequest, FrozenMember, Verdict
from outbox.contracts.envelope import Envelope
from outbox.contracts.first_release import first_release
from upstream.admission.contracts import RunCreated, WalletReserved

DEFINITION = first_release()
MEMBERS = {
    member.event_type: FrozenMember(
        definition=DEFINITION.reference,
        event_type=member.event_type,
        event_schema_version=member.event_schema_version,
        destination=member.destination,
        consumer_name=member.consumer_name,
        expected_receipt_type=member.expected_receipt_type,
        expected_receipt_schema_version=member.expected_receipt_schema_version,
        projection_name=getattr(member.projection_target, "projection_name", None),
        projection_version=getattr(member.projection_target, "projection_version", None),
    )
    for member in DEFINITION.members
    if member.destination == "core_operations"
}
OCCURRED_AT = "2026-10-01T12:00:00.000000Z"


def new_event_id() -> str:
    return str(uuid7())


@dataclass(frozen=True)
class Admission:
    """The two events of one admitted run."""

    run: Envelope
    wallet: Envelope

    @property
    def operation_id(self) -> str:
        return self.run.operation_id

    @property
    def requests(self) -> list[DeliveryRequest]:
        return [delivery(self.run), delivery(self.wallet)]


def admission(*, operation_id: str | None = None, correlation_id: str | None = None, revision: int = 1) -> Admission:
    """A run and its reservation, as admission would commit them."""
    operation = operation_id or f"operation-{uuid.uuid4()}"
    run_id, reservation_id = f"run:{uuid.uuid4()}", f"reservation:{uuid.uuid4()}"
    manifest = ContentReference(
        ref=f"run-admission-manifest:{run_id}", schema_version="1", digest=sha256_hex(run_id.encode())
    )
    common: dict[str, Any] = {
        "tenant_kind": "organization",
        "tenant_id": "organization-1",
        "workspace_id": "workspace-1",
        "project_id": "project-1",
        "correlation_id": correlation_id or f"correlation-{uuid.uuid4()}",
        "operation_id": operation,
        "occurred_at": OCCURRED_AT,
        "aggregate_revision": revision,
    }
    run = Envelope(
        event_id=new_event_id(),
        event_type="run.created@2.0",
        event_schema_version="2.0",
        aggregate_id=run_id,
        payload=RunCreated(
            run_id=run_id,
            billing_account_id="account-1",
            billing_reservation_id=reservation_id,
            run_admission_manifest=manifest,
        ).wire(),
        **common,
    )
    wallet = Envelope(
        event_id=new_event_id(),
        event_type="wallet.reserved@2.0",
        event_schema_version="2.0",
        aggregate_id=reservation_id,
        causation_id=run.event_id,
        payload=WalletReserved(
            billing_reservation_id=reservation_id,
            billing_account_id="account-1",
            run_id=run_id,
            currency="USD",
            hold_amount_picos="1234567890123",
            run_admission_manifest=manifest,
        ).wire(),
        **common,
    )
    return Admission(run, wallet)


def changed(envelope: Envelope, *, payload: dict[str, Any] | None = None, **fields: Any) -> Envelope:
    """The same event saying something else; `payload` replaces wire fields of it."""
    values = {name: getattr(envelope, name) for name in type(envelope).model_fields}
    return Envelope(**values | {"payload": envelope.payload | (payload or {})} | fields)


def delivery(event: Envelope, /, *, member: dict[str, Any] | None = None, **fields: Any) -> DeliveryRequest:
    """The delivery of an event to the projector; `member` and `fields` change what its request says."""
    data = event.canonical()
    request = DeliveryRequest(
        event_id=event.event_id,
        envelope=data,
        digest_algorithm_version="jcs-sha256-v1",
        envelope_sha256=sha256_hex(data),
        aggregate_id=event.aggregate_id,
        aggregate_revision=event.aggregate_revision,
        member=replace(MEMBERS[event.event_type], **(member or {})),
        producer="core",
    )
    return request._replace(**fields)


def apply(*requests: DeliveryRequest) -> list[Verdict]:
    """What the projector says to one batch."""
    return list(consume(requests))


def acknowledged(verdicts: Sequence[Verdict]) -> list[Acknowledged]:
    """The verdicts, all of which must be acknowledgements."""
    refused = [verdict for verdict in verdicts if not isinstance(verdict, Acknowledged)]
    assert not refused, refused
    return [verdict for verdict in verdicts if isinstance(verdict, Acknowledged)]


def rows(statement: str, *parameters: Any, alias: str = "default") -> list[tuple[Any, ...]]:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def one(statement: str, *parameters: Any) -> Any:
    """The only value of the only row."""
    ((value,),) = rows(statement, *parameters)
    return value


def state_of_projection() -> dict[str, list[tuple[Any, ...]]]:
    """Everything the projection says, without the times at which it was applied and without generated ids."""
    return {
        "summaries": rows(
            "SELECT operation_id, run_id, run_event_id::text, reservation_state, reservation_event_id::text,"
            " hold_amount_picos, currency FROM operation_summaries ORDER BY 1"
        ),
        "timeline": rows("SELECT operation_id, event_id::text, occurred_at FROM timeline_entries ORDER BY 1, 3, 2"),
        "unlinked": rows(
            "SELECT event_id::text, state, disagreements FROM pending_unlinked_reservations"
            " WHERE state <> 'linked' ORDER BY 1"
        ),
        "receipts": rows(
            "SELECT event_id::text, receipt_digest FROM operations_projection_applied_receipts ORDER BY 1"
        ),
        "aggregates": rows("SELECT aggregate_id, applied_revision, has_open_gap FROM projection_aggregates ORDER BY 1"),
        "open gaps": rows("SELECT event_id::text FROM revision_gaps WHERE state = 'open' ORDER BY 1"),
    }


def body(verdict: Acknowledged, contract: type[Contract]) -> Any:
    """The receipt that came with an acknowledgement, read as its contract."""
    return contract.parse(verdict.receipt)
