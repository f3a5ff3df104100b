"""A request's bytes to rows, piece by piece, and what was dropped on the way (T5, T7).

Nothing here holds more than one piece of the request: whoever stores it takes the pieces as they come.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from metering.otlp.fields import Field, Kind
from metering.otlp.read_record import Disagreements, Dropped, Given, Row, Rules, given, read_record
from metering.otlp.split import Malformed, records

PIECE = 2000
"""Records of one piece: some 2 MiB of Python objects."""
SAMPLES = 100
"""Dropped records of one request that are named one by one."""
Describe = Callable[[Kind, Row, LogRecord, Resource], bytes]
"""An accepted record as a line of the archive."""


@dataclass(slots=True)
class Summary:
    """What a request turned out to hold; complete when its last piece was taken."""

    accepted: Counter[Kind] = field(default_factory=Counter)
    dropped: Counter[tuple[Kind | None, Field]] = field(default_factory=Counter)
    samples: list[Dropped] = field(default_factory=list)
    """The first of them."""
    disagreements: Disagreements = field(default_factory=Disagreements)

    @property
    def rejected(self) -> int:
        """Records dropped for any reason."""
        return self.dropped.total()

    def drop(self, dropped: Dropped) -> None:
        """Count one dropped record."""
        self.dropped[dropped.kind, dropped.reason] += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(dropped)


@dataclass(slots=True)
class Piece:
    """Up to `PIECE` accepted records: rows by kind, and their archive lines where these were asked for."""

    rows: dict[Kind, list[Row]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    lines: list[bytes] = field(default_factory=list)


def decode(body: bytes, *, rules: Rules, summary: Summary, describe: Describe | None = None) -> Iterator[Piece]:
    """The accepted records of an ExportLogsServiceRequest, in order. Raises `Malformed` or `TooLarge` at any point."""
    piece, taken = Piece(), 0
    known: Resource | None = None
    resource = Given({}, frozenset())
    for resource_message, encoded in records(body):
        if resource_message is not known:
            known, resource = resource_message, given(resource_message.attributes)
        try:
            record = LogRecord.FromString(encoded)
        except DecodeError:
            raise Malformed("A record is not valid protobuf.") from None
        try:
            kind, row = read_record(record, resource=resource, rules=rules, disagreements=summary.disagreements)
        except Dropped as dropped:
            summary.drop(dropped)
            continue
        summary.accepted[kind] += 1
        piece.rows[kind].append(row)
        if describe is not None:
            piece.lines.append(describe(kind, row, record, resource_message))
        taken += 1
        if taken == PIECE:
            yield piece
            piece, taken = Piece(), 0
    if taken:
        yield piece
