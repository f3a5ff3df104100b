"""A dispatcher of core for tests, and a transport whose answers a test decides.

The transport stands for a consumer at the far side of the door. It is no mock of our code: what it answers is the
input of the code under test, and the real projector is used wherever its effect matters.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connections, transaction

from config.owners import owner_named
from operations.projector.contracts import OperationsProjectionAppliedReceipt
from outbox.append import Event, append_many
from outbox.contracts.ack import ActiveConsumerAck, OperationsProjectionApplied
from outbox.contracts.contract import Contract
from outbox.contracts.delivery import Acknowledged, DeliveryRequest, Verdict
from outbox.contracts.question import Question
from outbox.dispatch import Dispatcher
from outbox.transport import Pass

Answer = Callable[[DeliveryRequest], Verdict]


def receipt_for(request: DeliveryRequest, **changes: Any) -> OperationsProjectionAppliedReceipt:
    """The receipt the projector would write for this request, with changes."""
    member = request.member
    values: dict[str, Any] = {
        "ref": f"receipt:{request.event_id}",
        "destination": "core_operations",
        "consumer_name": "operations_projector",
        "projection_name": member.projection_name,
        "projection_version": member.projection_version,
        "event_id": request.event_id,
        "event_type": member.event_type,
        "event_schema_version": member.event_schema_version,
        "event_envelope_digest_algorithm_version": "jcs-sha256-v1",
        "event_envelope_sha256": request.envelope_sha256,
        "applied_at": "2026-01-01T00:00:00.000000Z",
    }
    return OperationsProjectionAppliedReceipt.issue(**{**values, **changes})


def acknowledge(
    request: DeliveryRequest, *, ack: dict[str, Any] | None = None, receipt: dict[str, Any] | None = None
) -> Acknowledged:
    """An acknowledgement with a receipt that recomputes; `ack` and `receipt` change what they say."""
    written = receipt_for(request, **(receipt or {}))
    values: dict[str, Any] = {
        "destination": "core_operations",
        "consumer_name": "operations_projector",
        "event_id": request.event_id,
        "event_envelope_digest_algorithm_version": "jcs-sha256-v1",
        "event_envelope_sha256": request.envelope_sha256,
        "applied_receipt": OperationsProjectionApplied(operations_projection_applied_receipt=written.reference),
    }
    return Acknowledged(ActiveConsumerAck(**{**values, **(ack or {})}), written.canonical())


@dataclass
class FarSide:
    """A transport: one answer per request, or an exception for the whole batch."""

    answer: Answer = acknowledge
    raises: Exception | None = None
    seen: list[list[DeliveryRequest]] = field(default_factory=list)

    def deliver(self, requests: Sequence[DeliveryRequest], *, access: Pass) -> Sequence[Verdict]:
        self.seen.append(list(requests))
        if self.raises is not None:
            raise self.raises
        return [self.answer(request) for request in requests]

    def ask(self, question: Question[Any, Any], *, expected: Contract, access: Pass) -> Any:
        raise LookupError("nothing is asked of the far side")


@pytest.fixture
def far_side() -> FarSide:
    """A far side that acknowledges everything, until the test decides otherwise."""
    return FarSide()


@pytest.fixture
def dispatcher(database: None, far_side: FarSide) -> Iterator[Dispatcher]:
    """A dispatcher of core that delivers to the far side."""
    with Dispatcher(owner_named("core"), deliver_through=far_side) as made:
        yield made


@pytest.fixture
def appended(database: None) -> Callable[..., None]:
    """Append and commit events of core."""

    def run(*events: Event) -> None:
        with transaction.atomic(using="default"):
            append_many(events, using="default")

    return run


def rows(sql: str, *values: Any, using: str = "default.read") -> list[tuple[Any, ...]]:
    """What a query answers."""
    with connections[using].cursor() as cursor:
        cursor.execute(sql, list(values) or None)
        return cursor.fetchall() if cursor.description else []
