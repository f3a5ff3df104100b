"""Cut an ExportLogsServiceRequest into its records without parsing it as a whole.

The official messages parse resources and records, one at a time, so a body of 32 MiB never becomes a tree of objects
several times its size. This module knows four field numbers and the protobuf wire format, and nothing else.
"""

from collections.abc import Iterator

from google.protobuf.message import DecodeError
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

RESOURCE_LOGS = RESOURCE = 1
SCOPE_LOGS = LOG_RECORDS = 2
MAX_RECORD_BYTES = 4 * 1024 * 1024
"""Of one record or resource: a parsed message can be some twenty times its bytes."""
MAX_RECORDS = 250_000
"""Of one request: two bytes are a record, and each costs a look."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


class Malformed(ValueError):
    """The body is no ExportLogsServiceRequest. Permanent: correct the exporter."""


class TooLarge(ValueError):
    """The request holds more than the receiver takes at once. Permanent: send smaller batches."""


def records(body: bytes) -> Iterator[tuple[Resource, bytes]]:
    """Every log record of the request as its own bytes, with its resource. Raises `Malformed`, `TooLarge`."""
    count = 0
    for start, end in _parts(body, 0, len(body), RESOURCE_LOGS):
        resource = _resource(body, start, end)
        for scope_start, scope_end in _parts(body, start, end, SCOPE_LOGS):
            for record_start, record_end in _parts(body, scope_start, scope_end, LOG_RECORDS):
                count += 1
                if count > MAX_RECORDS:
                    raise TooLarge(f"The request holds more than {MAX_RECORDS} records.")
                if record_end - record_start > MAX_RECORD_BYTES:
                    raise TooLarge(f"A record is larger than {MAX_RECORD_BYTES} bytes.")
                yield resource, body[record_start:record_end]


def _resource(body: bytes, start: int, end: int) -> Resource:
    """The resource of a ResourceLogs; given in several pieces they merge, as protobuf says."""
    pieces = [body[begin:stop] for begin, stop in _parts(body, start, end, RESOURCE)]
    merged = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if len(merged) > MAX_RECORD_BYTES:
        raise TooLarge(f"A resource is larger than {MAX_RECORD_BYTES} bytes.")
    try:
        return Resource.FromString(merged)
    except DecodeError:
        raise Malformed("A resource is not valid protobuf.") from None


def _parts(body: bytes, position: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Where each length-delimited field `wanted` of the message at `position` begins and ends; others are skipped."""
    while position < end:
        tag, position = _varint(body, position, end)
        kind, number = tag & 7, tag >> 3
        if not number or (number == wanted and kind != BYTES):
            raise Malformed("A field has another number or wire type than it may have.")
        if kind == BYTES:
            length, position = _varint(body, position, end)
            stop = position + length
            if stop > end:
                raise Malformed("A field is longer than its message.")
            if number == wanted:
                yield position, stop
            position = stop
        elif kind == VARINT:
            _, position = _varint(body, position, end)
        elif kind in {FIXED64, FIXED32}:
            position += 8 if kind == FIXED64 else 4
            if position > end:
                raise Malformed("A field is longer than its message.")
        else:
            raise Malformed("A field has an unknown wire type.")


def _varint(body: bytes, position: int, end: int) -> tuple[int, int]:
    """The number at `position`, and where it ends."""
    if position < end:
        byte = body[position]
        if byte < 0x80:  # noqa: PLR2004  # the continuation bit
            return byte, position + 1
    value = shift = 0
    for place in range(position, min(end, position + _MAX_VARINT_BYTES)):
        byte = body[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004  # as above
            return value, place + 1
        shift += 7
    raise Malformed("A number is cut off.")
