"""Cut an ExportLogsServiceRequest into its records without parsing it as a whole.

The official messages parse resources and records, one at a time, so a body of 32 MiB never becomes a tree of objects
several times its size. This module knows four field numbers and nothing else.
"""

from collections.abc import Iterator

from metering.otlp.essentials import WHOLE_BYTES, ReadResource, read_resource
from metering.otlp.wire import TooLarge, parts

RESOURCE_LOGS = RESOURCE = 1
SCOPE_LOGS = LOG_RECORDS = 2
MAX_RECORD_BYTES = 4 * 1024 * 1024
"""Of one record or resource."""
MANY = 20_000
"""Records from which a request is heavy."""
MAX_RECORDS = 100_000
"""Of one request: two bytes are a record, and each costs a look."""


def records(body: bytes) -> Iterator[tuple[ReadResource, bytes]]:
    """Every log record of the request as its own bytes, with its resource. Raises `Malformed`, `TooLarge`."""
    count = 0
    for start, end in parts(body, 0, len(body), RESOURCE_LOGS):
        resource = _resource(body, start, end)
        for scope_start, scope_end in parts(body, start, end, SCOPE_LOGS):
            for record_start, record_end in parts(body, scope_start, scope_end, LOG_RECORDS):
                count += 1
                if count > MAX_RECORDS:
                    raise TooLarge(f"The request holds more than {MAX_RECORDS} records.")
                if record_end - record_start > MAX_RECORD_BYTES:
                    raise TooLarge(f"A record is larger than {MAX_RECORD_BYTES} bytes.")
                yield resource, body[record_start:record_end]


def is_heavy(body: bytes) -> bool:
    """Whether it has more than `MANY` records, or one or a resource that is not read whole. Raises `Malformed`."""
    count = 0
    for start, end in parts(body, 0, len(body), RESOURCE_LOGS):
        if any(stop - begin > WHOLE_BYTES for begin, stop in parts(body, start, end, RESOURCE)):
            return True
        for scope_start, scope_end in parts(body, start, end, SCOPE_LOGS):
            for record_start, record_end in parts(body, scope_start, scope_end, LOG_RECORDS):
                count += 1
                if count > MANY or record_end - record_start > WHOLE_BYTES:
                    return True
    return False


def _resource(body: bytes, start: int, end: int) -> ReadResource:
    """The resource of a ResourceLogs; given in several pieces they merge, as protobuf says."""
    pieces = [body[begin:stop] for begin, stop in parts(body, start, end, RESOURCE)]
    merged = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if len(merged) > MAX_RECORD_BYTES:
        raise TooLarge(f"A resource is larger than {MAX_RECORD_BYTES} bytes.")
    return read_resource(merged)
