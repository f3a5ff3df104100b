"""Requests as collectors send them: typed functions that build OTLP messages, good ones unless told otherwise."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp.fields import Kind
from metering.otlp.read_record import Rules

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)
LLM: dict[str, Any] = {
    "event_type": "llm_billing",
    "tenant_name": "team-a",
    "namespace": "team-a",
    "model_name": "m-large",
    "provider": "p",
    "prompt_tokens": 1200,
    "completion_tokens": 34,
    "manager_key_id": "77",
}
RESOURCE: dict[str, Any] = {
    "event_type": "resource_utilization",
    "tenant_name": "team-a",
    "namespace": "team-a",
    "resource_type": "cpu",
    "utilization": 0.75,
    "above_threshold": True,
}
ABSENT = object()
"""Leaves an attribute out."""


def nanos(at: datetime) -> int:
    """Nanoseconds since 1970, exactly."""
    whole = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (whole.days * 86_400 + whole.seconds) * 10**9 + whole.microseconds * 1000


def rules(*, gateway: bool = True, latest: int = 2**62, earliest: int = -(2**62)) -> Rules:
    """What a request is held to; by default any time is taken."""
    return Rules(needs_manager_key=gateway, latest=latest, earliest=dict.fromkeys(Kind, earliest))


SIMPLE: dict[type, str] = {
    bool: "bool_value",
    int: "int_value",
    float: "double_value",
    str: "string_value",
    bytes: "bytes_value",
}


def value(of: Any) -> AnyValue:
    """An attribute's value of the kind that a Python value has."""
    if isinstance(of, AnyValue):
        return of
    made = AnyValue()
    if type(of) in SIMPLE:
        setattr(made, SIMPLE[type(of)], of)
    elif isinstance(of, dict):
        made.kvlist_value.SetInParent()
        made.kvlist_value.values.extend(pairs(of))
    elif isinstance(of, list):
        made.array_value.SetInParent()
        made.array_value.values.extend(value(item) for item in of)
    elif of is not None:
        raise TypeError(type(of))
    return made


def pairs(attributes: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> list[KeyValue]:
    """Attributes in order; a list of pairs may name a key twice."""
    items = attributes.items() if isinstance(attributes, Mapping) else attributes
    return [KeyValue(key=key, value=value(given)) for key, given in items if given is not ABSENT]


def record(
    attributes: Mapping[str, Any] | Sequence[tuple[str, Any]], *, at: datetime | int | None = NOON, observed: int = 0
) -> LogRecord:
    """One log record; `at` as a time or in nanoseconds, None for no time."""
    return LogRecord(
        time_unix_nano=0 if at is None else at if isinstance(at, int) else nanos(at),
        observed_time_unix_nano=observed,
        attributes=pairs(attributes),
    )


def llm(
    event_id: str | object = "", *, at: datetime | int | None = NOON, observed: int = 0, **changed: Any
) -> LogRecord:
    """An LLM event with an id of its own, and some attributes changed, added or `ABSENT`."""
    return record({**LLM, "event_id": event_id or str(uuid.uuid4()), **changed}, at=at, observed=observed)


def sample(
    event_id: str | object = "", *, at: datetime | int | None = NOON, observed: int = 0, **changed: Any
) -> LogRecord:
    """A resource event, likewise."""
    return record({**RESOURCE, "event_id": event_id or str(uuid.uuid4()), **changed}, at=at, observed=observed)


def request(
    records: Iterable[LogRecord], *, resource: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()
) -> ExportLogsServiceRequest:
    """A request of one resource and one scope."""
    made = ExportLogsServiceRequest()
    logs = made.resource_logs.add()
    logs.resource.attributes.extend(pairs(resource))
    logs.scope_logs.add().log_records.extend(records)
    return made


def body(records: Iterable[LogRecord], *, resource: Mapping[str, Any] | Sequence[tuple[str, Any]] = ()) -> bytes:
    """Its bytes."""
    return request(records, resource=resource).SerializeToString()


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def padded(encoded: bytes, size: int) -> bytes:
    """A request made exactly this long by a field that nobody knows."""
    missing = size - len(encoded)
    for length in range(missing - 6, missing):
        filler = b"\x7a" + varint(length) + bytes(length)
        if len(filler) == missing:
            return encoded + filler
    raise ValueError(missing)


def wrapped(number: int, encoded: bytes) -> bytes:
    """A field of bytes, as protobuf encodes it."""
    length, parts = len(encoded), bytearray()
    while length > 127:
        parts.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *parts, length]) + encoded
