"""Gzipped OTLP bodies as a collector sends them, made quickly: one record is written once and copied under other ids.

What differs between records has a fixed length (a UUID, a fixed64 time), so a copy is a replacement of bytes.
"""

import gzip
import struct
import uuid
from collections.abc import Iterator
from random import Random

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

EVENT_ID = "00000000-0000-4000-8000-000000000000"
TIME = 0x1122334455667788
MODELS = ("model-large", "model-small", "model-micro")
NANOS = 1_000_000_000


def bodies(*, records: int, batch: int, seed: int, ends_at: int) -> Iterator[bytes]:
    """`records` LLM events in bodies of `batch`, with times of the hour before `ends_at` (seconds). Same seed: same."""
    random = Random(seed)  # reproducible load, no secret
    templates = [_record(model).SerializeToString() for model in MODELS]
    resource = _tagged(1, _resource().SerializeToString())
    for first in range(0, records, batch):
        encoded = bytearray()
        for _ in range(min(batch, records - first)):
            event_id = str(uuid.UUID(int=random.getrandbits(128), version=4)).encode()
            at = ends_at * NANOS - random.randrange(3600 * NANOS)
            record = templates[random.randrange(len(MODELS))].replace(EVENT_ID.encode(), event_id, 1)
            encoded += _tagged(2, record.replace(struct.pack("<Q", TIME), struct.pack("<Q", at)))
        yield gzip.compress(_tagged(1, resource + _tagged(2, bytes(encoded))), compresslevel=6, mtime=0)


def large_body() -> bytes:
    """A valid body that is not compressed and has almost the 8 MiB that one may have on the wire."""
    record = _record(MODELS[0])
    count = 8 * 2**20 // (len(record.SerializeToString()) + 8)
    logs = ResourceLogs(resource=_resource(), scope_logs=[ScopeLogs()])
    for _ in range(count):
        one = logs.scope_logs[0].log_records.add()
        one.CopyFrom(record)
        one.time_unix_nano = one.observed_time_unix_nano = 0
        one.attributes[0].value.string_value = str(uuid.uuid4())
    return ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()


def _record(model: str) -> LogRecord:
    values: dict[str, str | int] = {
        "event_id": EVENT_ID,
        "event_type": "llm_billing",
        "manager_key_id": "1",
        "model_name": model,
        "provider": "provider-a",
        "prompt_tokens": 2000,
        "completion_tokens": 300,
        "cached_input_tokens": 100,
    }
    attributes = [KeyValue(key=key, value=_value(value)) for key, value in values.items()]
    return LogRecord(time_unix_nano=TIME, observed_time_unix_nano=TIME, attributes=attributes)


def _resource() -> Resource:
    values = {
        "cluster_id": "999",
        "tenant_name": "tenant-a",
        "namespace": "tenant-a",
        "organization_id": "17",
        "robot_id": "42",
        "cr_name": "robot-a",
        "k8s.pod.uid": "6f6b2b0e-6f6b-4b0e-8f6b-2b0e6f6b2b0e",
    }
    return Resource(attributes=[KeyValue(key=key, value=_value(value)) for key, value in values.items()])


def _value(value: str | int) -> AnyValue:
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)


def _tagged(number: int, content: bytes) -> bytes:
    length, size = bytearray(), len(content)
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes([number << 3 | 2]) + bytes(length) + content
