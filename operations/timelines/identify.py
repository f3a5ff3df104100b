"""Every exact identifier of an event, and to what each leads (O26)."""

from collections.abc import Iterator

from operations.timelines.fact import Fact, Part
from operations.timelines.models import IdentifierKind

IdentifierRow = tuple[str, str, str, str | None]
"""(value, kind, event id, operation id or None)."""

_EVENT, _RESERVATION = IdentifierKind.EVENT.value, IdentifierKind.RESERVATION.value
_CORRELATION, _CAUSATION = IdentifierKind.CORRELATION.value, IdentifierKind.CAUSATION.value
_RUN, _OPERATION = IdentifierKind.RUN.value, IdentifierKind.OPERATION.value


def of_entry(fact: Fact) -> Iterator[IdentifierRow]:
    """The identifiers of an event in a timeline. A linked reservation shares its run's correlation."""
    envelope = fact.envelope
    event_id, operation_id = envelope.event_id, envelope.operation_id
    yield event_id, _EVENT, event_id, operation_id
    if envelope.causation_id is not None:
        yield envelope.causation_id, _CAUSATION, event_id, operation_id
    if fact.part is Part.RESERVATION:
        yield fact.payload.billing_reservation_id, _RESERVATION, event_id, operation_id
    else:
        yield envelope.correlation_id, _CORRELATION, event_id, operation_id


def of_unlinked(wallet: Fact) -> Iterator[IdentifierRow]:
    """The identifiers of a reservation that stands in no timeline: they lead to its own row, to no operation."""
    envelope = wallet.envelope
    event_id = envelope.event_id
    yield event_id, _EVENT, event_id, None
    yield wallet.payload.billing_reservation_id, _RESERVATION, event_id, None
    yield wallet.payload.run_id, _RUN, event_id, None
    yield envelope.operation_id, _OPERATION, event_id, None
    yield envelope.correlation_id, _CORRELATION, event_id, None
    if envelope.causation_id is not None:
        yield envelope.causation_id, _CAUSATION, event_id, None
