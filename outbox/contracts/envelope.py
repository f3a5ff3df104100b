"""The canonical event envelope, and the registry of payload contracts (O3, O5; decisions, "Contracts")."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, JsonValue

from outbox.contracts.canonical import MAX_INTEGER, encode_around
from outbox.contracts.contract import Contract, Identifier, Timestamp, Version

Revision = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
"""Counts from 1 within one aggregate."""
EventType = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[a-z][a-z0-9.-]*@[0-9]+(\.[0-9]+)?$")]
"""The exact literal, its `@version` included: `run.created@2.0`."""


class Tenancy(Contract):
    """Whose fact this is."""

    tenant_kind: Literal["organization", "personal"]
    tenant_id: Identifier
    workspace_id: Identifier
    project_id: Identifier | None = None


class Envelope(Tenancy):
    """One immutable event. (event type, aggregate id, aggregate revision) is unique in its producer's database."""

    event_id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")]
    event_type: EventType
    event_schema_version: Version
    aggregate_id: Identifier
    aggregate_revision: Revision
    correlation_id: Identifier
    causation_id: Identifier | None = None
    operation_id: Identifier
    occurred_at: Timestamp
    payload: dict[str, JsonValue]

    @property
    def pair(self) -> tuple[str, str]:
        """(event type, schema version), the key of the delivery-set definition."""
        return self.event_type, self.event_schema_version


_ALIASES = {name: field.alias or name for name, field in Envelope.model_fields.items() if name != "payload"}


def envelope_around(payload: Contract, fields: Mapping[str, Any]) -> bytes:
    """Canonical bytes of the envelope that carries `payload`, whose own bytes stand in it as they are.

    `fields` are the other fields of `Envelope`, by Python name. Raises `ValueError` for what does not fit.
    """
    Envelope.__pydantic_validator__.validate_python({**fields, "payload": {}}, by_name=True, by_alias=False)
    head = {_ALIASES[name]: value for name, value in fields.items() if value is not None}
    return encode_around(head, member="payload", content=payload.canonical())


class UnknownEvent(LookupError):
    """No payload contract is registered for this exact (event type, schema version). Permanent."""


_PAYLOADS: dict[tuple[str, str], type[Contract]] = {}


def event_payload(event_type: str, schema_version: str) -> Any:
    """Class decorator: the payload contract of one exact pair. An owner's `contracts.py` uses it once per event."""

    def register(payload: type[Contract]) -> type[Contract]:
        known = _PAYLOADS.setdefault((event_type, schema_version), payload)
        if known is not payload:
            raise ValueError(f"{event_type} {schema_version} already has the payload contract {known.__name__}.")
        return payload

    return register


def payload_contract(event_type: str, schema_version: str) -> type[Contract]:
    """The contract of a pair; no prefix, wildcard, alias or "latest". Raises `UnknownEvent`."""
    try:
        return _PAYLOADS[event_type, schema_version]
    except KeyError:
        raise UnknownEvent(f"No payload contract for {event_type!r} with schema version {schema_version!r}.") from None


def registered_payloads() -> dict[tuple[str, str], type[Contract]]:
    """Every pair with its contract, for publication."""
    return dict(_PAYLOADS)


P = TypeVar("P", bound=Contract)


def decode_payload(envelope: Envelope, contract: type[P]) -> P:
    """The typed payload. Raises `UnknownEvent` for another pair's contract, `ContractViolation` for a bad payload."""
    if payload_contract(*envelope.pair) is not contract:
        raise UnknownEvent(f"{contract.__name__} is not the payload of {envelope.event_type!r}.")
    return contract.from_wire(envelope.payload)
