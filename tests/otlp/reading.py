"""What decoding makes of records, with names instead of positions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp.decode import Summary, decode
from metering.otlp.describe import fields
from metering.otlp.read_record import Rules
from tests.otlp.make import body, rules


def read(
    records: Iterable[LogRecord],
    *,
    resource: Mapping[str, Any] | Sequence[tuple[str, Any]] = (),
    held_to: Rules | None = None,
) -> tuple[list[dict[str, Any]], Summary]:
    """The accepted events by field name, and the summary."""
    summary = Summary()
    events = [
        fields(kind, row)
        for piece in decode(body(records, resource=resource), rules=held_to or rules(), summary=summary)
        for kind, rows in piece.rows.items()
        for row in rows
    ]
    return events, summary


def fate(one: LogRecord, **named: Any) -> dict[str, Any] | str:
    """The event that a record becomes, or the field for which it is dropped."""
    events, summary = read([one], **named)
    if events:
        assert not summary.dropped
        return events[0]
    ((_, reason),) = summary.dropped
    return str(reason)
