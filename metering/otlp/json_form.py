"""OTLP/JSON to the protobuf that everything behind reads. Only where a setting accepts it.

It is protobuf's JSON form but for two ids, which are hexadecimal. 64-bit integers may be strings or numbers, unknown
names are ignored. Billing reads neither id, so they are left out instead of being converted.
"""

from typing import Any

import orjson
from google.protobuf.json_format import ParseDict, ParseError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from metering.otlp.wire import Malformed

IDS = ("traceId", "spanId", "trace_id", "span_id")


def to_protobuf(body: bytes) -> bytes:
    """The same request in protobuf. Raises `Malformed`."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Malformed("The body is no valid JSON.") from None
    if not isinstance(document, dict):
        raise Malformed("The body is no JSON object.")
    for record in _records(document):
        for name in IDS:
            record.pop(name, None)
    try:
        request = ParseDict(document, ExportLogsServiceRequest(), ignore_unknown_fields=True)
    except (ParseError, RecursionError, TypeError, ValueError):
        raise Malformed("The body is no ExportLogsServiceRequest in OTLP/JSON.") from None
    return request.SerializeToString()


def _records(document: dict[str, Any]) -> Any:
    for resource in _objects(document, "resourceLogs", "resource_logs"):
        for scope in _objects(resource, "scopeLogs", "scope_logs"):
            yield from _objects(scope, "logRecords", "log_records")


def _objects(parent: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    for name in names:
        found = parent.get(name)
        if isinstance(found, list):
            return [item for item in found if isinstance(item, dict)]
    return []
