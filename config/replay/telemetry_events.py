"""A trace as the billing events that a cluster's collector would send: the same row of the same file, the same event.

Three quarters of the rows are calls through the gateway, attributed by managed key; a quarter comes from a cluster
whose events name the organisation themselves. Each is an `llm_billing` event whose id and time never change.
"""

import gzip
import hashlib
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from upstream.admission.trace import TraceRow

GATEWAY_CLUSTER, OWN_CLUSTER = 1, 2
KEYS = ("101", "102", "103", "104")
ORGANIZATIONS = ("kestrel-health", "lagoon-media", "juniper-shipping")
MODELS = ("code-large", "code-small")
MICROSECOND = 1000


@dataclass(frozen=True, slots=True)
class Batch:
    """One request to the receiver."""

    cluster_id: int
    body: bytes
    records: int


def batches(rows: Sequence[TraceRow], *, trace: str) -> list[Batch]:
    """The requests that carry these rows, one per cluster that has any; `trace` is the digest of the file."""
    records: dict[int, list[LogRecord]] = {GATEWAY_CLUSTER: [], OWN_CLUSTER: []}
    for row in rows:
        drawn = zlib.crc32(f"{trace}:{row.line}".encode())
        cluster = OWN_CLUSTER if drawn % 4 == 0 else GATEWAY_CLUSTER
        records[cluster].append(_record(row, drawn=drawn, trace=trace, cluster=cluster))
    return [Batch(cluster, _body(found, cluster), len(found)) for cluster, found in records.items() if found]


def event_id(trace: str, line: int) -> str:
    """The id of a row's event: a UUID of version 4 in form, and the same every time."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"{trace}:{line}".encode()).digest()[:16], version=4))


def _record(row: TraceRow, *, drawn: int, trace: str, cluster: int) -> LogRecord:
    nanos = round(datetime.fromisoformat(row.requested_at).timestamp() * 1_000_000) * MICROSECOND
    values: dict[str, str | int] = {
        "event_id": event_id(trace, row.line),
        "event_type": "llm_billing",
        "model_name": MODELS[(drawn >> 8) % len(MODELS)],
        "provider": "demo-provider",
        "prompt_tokens": row.context_tokens,
        "completion_tokens": row.generated_tokens,
    }
    if cluster == GATEWAY_CLUSTER:
        values["manager_key_id"] = KEYS[(drawn >> 16) % len(KEYS)]
    else:
        values["organization_id"] = ORGANIZATIONS[(drawn >> 16) % len(ORGANIZATIONS)]
    return LogRecord(time_unix_nano=nanos, observed_time_unix_nano=nanos, attributes=_attributes(values))


def _body(records: Sequence[LogRecord], cluster: int) -> bytes:
    name = "llm-gateway" if cluster == GATEWAY_CLUSTER else "robots"
    resource = Resource(attributes=_attributes({"tenant_name": name, "namespace": name, "robot_id": "7"}))
    logs = ResourceLogs(resource=resource, scope_logs=[ScopeLogs(log_records=records)])
    return gzip.compress(ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString())


def _attributes(values: dict[str, str | int]) -> list[KeyValue]:
    return [
        KeyValue(key=key, value=AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value))
        for key, value in values.items()
    ]
