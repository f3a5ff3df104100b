"""Read a record or a resource; where it cannot be read as a whole, only what is stored of it.

Attributes that are not stored may hold anything: text that is no UTF-8, values nested without end, two million of them
in four kilobytes of gzip. The official messages refuse the first two, and take a hundred times its bytes for the third.
Then the message is walked instead, and only stored attributes and times become objects (T4, T5).
"""

from collections import Counter
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from metering.otlp.read_record import STORED
from metering.otlp.wire import BYTES, FIXED64, fields

WHOLE_BYTES = 256 * 1024
"""The largest message that is read as a whole; parsed, it may take a hundred times its bytes."""
LARGEST_VALUE = 64 * 1024
"""Of a stored attribute; what is larger fits no column."""
TIME, OBSERVED_TIME, ATTRIBUTES = 1, 11, 6
RESOURCE_ATTRIBUTES = 1
KEY = 1
SHORTEST = 2 + min(map(len, STORED))
"""Bytes of an attribute with a stored key."""
TWICE = 2
"""So often a key is kept: that it is there twice is all that matters."""


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record; `is_whole` if nothing of it was left out."""

    message: LogRecord
    is_whole: bool


@dataclass(frozen=True, slots=True)
class ReadResource:
    """A resource, likewise."""

    message: Resource
    is_whole: bool


def read_whole_or_essentials(encoded: bytes) -> ReadRecord:
    """Raises `Malformed` if it is no message at all."""
    if len(encoded) <= WHOLE_BYTES:
        try:
            return ReadRecord(LogRecord.FromString(encoded), is_whole=True)
        except DecodeError:
            pass
    record, kept = LogRecord(), Counter[str]()
    for number, kind, start, stop in fields(encoded):
        if number == ATTRIBUTES and kind == BYTES:
            pair = _stored(encoded, start, stop, kept)
            if pair is not None:
                record.attributes.append(pair)
        elif kind == FIXED64 and number == TIME:
            record.time_unix_nano = int.from_bytes(encoded[start:stop], "little")
        elif kind == FIXED64 and number == OBSERVED_TIME:
            record.observed_time_unix_nano = int.from_bytes(encoded[start:stop], "little")
    return ReadRecord(record, is_whole=False)


def read_resource(encoded: bytes) -> ReadResource:
    """Raises `Malformed` if it is no message at all."""
    if len(encoded) <= WHOLE_BYTES:
        try:
            return ReadResource(Resource.FromString(encoded), is_whole=True)
        except DecodeError:
            pass
    resource, kept = Resource(), Counter[str]()
    for number, kind, start, stop in fields(encoded):
        pair = _stored(encoded, start, stop, kept) if number == RESOURCE_ATTRIBUTES and kind == BYTES else None
        if pair is not None:
            resource.attributes.append(pair)
    return ReadResource(resource, is_whole=False)


def _stored(message: bytes, begins: int, ends: int, kept: Counter[str]) -> KeyValue | None:
    """The attribute if its key is stored. A value that no column takes becomes one of a kind that none takes."""
    if ends - begins < SHORTEST:
        return None
    encoded, key = message[begins:ends], b""
    for number, kind, start, stop in fields(encoded):
        if number == KEY and kind == BYTES:
            key = encoded[start:stop]
    name = key.decode(errors="replace")
    if name not in STORED or kept[name] == TWICE:
        return None
    kept[name] += 1
    if len(encoded) <= LARGEST_VALUE:
        try:
            return KeyValue.FromString(encoded)
        except DecodeError:
            pass
    return KeyValue(key=name, value=AnyValue(bytes_value=b""))
