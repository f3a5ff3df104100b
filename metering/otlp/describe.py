"""One accepted event as a line of the archive: what is stored, and every attribute as it came but `cluster_id` (T4).

Attributes are in OTLP/JSON, so nothing of their kinds is lost: integers are strings of digits, bytes are base64. Both
the resource's and the record's `cluster_id` say what the token says, whatever the sender wrote or left out. Of what
could not be read as a whole only stored attributes are there, and `attributes_cut` says so.
"""

import base64
import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import orjson
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from metering.otlp.essentials import ReadRecord, ReadResource
from metering.otlp.fields import COLUMNS, Kind
from metering.otlp.read_record import Row
from metering.otlp.times import moment

CLUSTER_ID = "cluster_id"
NAME = "otlp_billing_event"
"""What a line is called, in the archive and in the log."""


class Archivist:
    """Makes the lines of one request."""

    def __init__(self, *, cluster_id: str, mode: str, received_at: datetime) -> None:
        self._common = {"cluster_id": cluster_id, "source_mode": mode, "received_at": stamp(received_at)}
        self._cluster_id = cluster_id
        self._resource: ReadResource | None = None
        self._resource_attributes: list[Any] = []

    def line(self, kind: Kind, row: Row, record: ReadRecord, resource: ReadResource) -> bytes:
        """The event as one line of JSON, its line feed included."""
        if resource is not self._resource:
            self._resource = resource
            self._resource_attributes = rewritten(resource.message.attributes, self._cluster_id)
        return orjson.dumps(
            {
                "log": NAME,
                **fields(kind, row),
                **self._common,
                "attributes": rewritten(record.message.attributes, self._cluster_id),
                "resource_attributes": self._resource_attributes,
                **({} if record.is_whole and resource.is_whole else {"attributes_cut": True}),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )


def fields(kind: Kind, row: Row) -> dict[str, Any]:
    """What is stored of an event, by name."""
    named = {column.name: value for column, value in zip(COLUMNS[kind], row, strict=False)}
    return {"event_type": kind.value, **named, "occurred_at": stamp(moment(row[-1]))}


def stamp(at: datetime) -> str:
    """RFC 3339, UTC, microseconds, `Z`."""
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"


def rewritten(attributes: Iterable[KeyValue], cluster_id: str) -> list[dict[str, Any]]:
    """The attributes in OTLP/JSON, exactly one of them `cluster_id`, with this value."""
    kept = [{"key": pair.key, "value": as_json(pair.value)} for pair in attributes if pair.key != CLUSTER_ID]
    return [*kept, {"key": CLUSTER_ID, "value": {"stringValue": cluster_id}}]


def as_json(value: AnyValue) -> dict[str, Any]:  # noqa: PLR0911  # one per kind
    """An attribute's value in OTLP/JSON."""
    match value.WhichOneof("value"):
        case "string_value":
            return {"stringValue": value.string_value}
        case "bool_value":
            return {"boolValue": value.bool_value}
        case "int_value":
            return {"intValue": str(value.int_value)}
        case "double_value":
            return {"doubleValue": _double(value.double_value)}
        case "bytes_value":
            return {"bytesValue": base64.b64encode(value.bytes_value).decode()}
        case "array_value":
            return {"arrayValue": {"values": [as_json(item) for item in value.array_value.values]}}
        case "kvlist_value":
            pairs = [{"key": pair.key, "value": as_json(pair.value)} for pair in value.kvlist_value.values]
            return {"kvlistValue": {"values": pairs}}
        case _:
            return {}


def _double(number: float) -> float | str:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
