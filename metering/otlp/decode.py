"""A request's bytes to rows, piece by piece, and what was dropped on the way (T5, T7).

Nothing here holds more than one piece of the request: whoever stores it takes the pieces as they come.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from metering.otlp.essentials import ReadRecord, ReadResource, read_whole_or_essentials
from metering.otlp.fields import Field, Kind
from metering.otlp.form import Forms
from metering.otlp.read_record import Disagreements, Dropped, Given, Row, Rules, given, read_record
from metering.otlp.split import records

PIECE = 2000
"""Records of one piece: some 2 MiB of Python objects."""
SAMPLES = 100
"""Dropped records of one request that are named one by one."""
Describe = Callable[[Kind, Row, ReadRecord, ReadResource], bytes]
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

    def took(self, piece: "Piece") -> "Piece":
        """Count what a piece holds."""
        self.accepted.update({kind: len(rows) for kind, rows in piece.rows.items()})
        return piece

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
    known: ReadResource | None = None
    resource = Given({}, frozenset())
    forms = Forms(resource=resource, rules=rules)
    piece = Piece()
    add, left = _adders(piece), PIECE
    for beside, encoded in records(body):
        if beside is not known:
            known, resource = beside, given(beside.message.attributes)
            forms = Forms(resource=resource, rules=rules)
        read = read_whole_or_essentials(encoded)
        found = forms.read(read.message)
        if found is None:
            try:
                found = read_record(read.message, resource=resource, rules=rules, disagreements=summary.disagreements)
            except Dropped as dropped:
                summary.drop(dropped)
                continue
        kind, row = found
        add[kind is Kind.LLM_BILLING](row)
        if describe is not None:
            piece.lines.append(describe(kind, row, read, beside))
        left -= 1
        if not left:
            yield summary.took(piece)
            piece = Piece()
            add, left = _adders(piece), PIECE
    yield summary.took(piece)


def _adders(piece: Piece) -> tuple[Callable[[Row], None], Callable[[Row], None]]:
    """How to add a row that is not, and one that is, an LLM event. (The hash of an enum's member is slow.)"""
    return piece.rows[Kind.RESOURCE_UTILIZATION].append, piece.rows[Kind.LLM_BILLING].append
