"""Where accepted events go: the log, the store, or the store and then the archive (T10).

200 means that the sink has the events: written to the log for `logging`, which keeps nothing else; committed for
`timescale`; committed and archived for `fanout`, which archives every accepted event, duplicates included. Whatever
fails raises, so the request is answered 503 and comes again; nothing is archived that is not committed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import structlog
from django.conf import settings

from metering.clusters.models import Sink
from metering.otlp.archive import Archive
from metering.otlp.decode import Describe, Piece, Summary
from metering.otlp.describe import NAME, Archivist, fields
from metering.otlp.store import Outcome, store
from outbox.steps import reach

log = structlog.get_logger("otlp.sink")

Decoded = Callable[[Describe | None], Iterator[Piece]]
"""Decodes the request, with a way to describe each event or without."""


class ArchiveFailed(Exception):
    """The events are stored but not archived. Transient: free the disk of the archive; the sender comes again."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose events they are, from the token."""

    cluster_id: str
    mode: str
    received_at: datetime


@cache
def archive() -> Archive:
    """The archive files of this process."""
    return Archive(
        directory=settings.OTLP_ARCHIVE_DIR,
        rotate_bytes=settings.OTLP_ARCHIVE_ROTATE_BYTES,
        rotate_seconds=settings.OTLP_ARCHIVE_ROTATE_SECONDS,
    )


def sink_of(own: str | None) -> Sink:
    """The sink of a cluster: its own, or the one set for all."""
    return Sink(own or settings.OTLP_SINK_TYPE)


def put(decoded: Decoded, *, sink: Sink, origin: Origin, summary: Summary) -> Outcome | None:
    """Put a request's events where they belong; what became of them in the store, None if the sink has none.

    Raises what decoding and `store` raise, and `ArchiveFailed`.
    """
    match sink:
        case Sink.LOGGING:
            for piece in decoded(None):
                _log(piece, origin)
            return None
        case Sink.TIMESCALE:
            return _store(decoded(None), origin, summary)
        case Sink.FANOUT:
            return _fan_out(decoded, origin, summary)


def _fan_out(decoded: Decoded, origin: Origin, summary: Summary) -> Outcome:
    archivist = Archivist(cluster_id=origin.cluster_id, mode=origin.mode, received_at=origin.received_at)
    lines: list[bytes] = []

    def keeping_lines() -> Iterator[Piece]:
        for piece in decoded(archivist.line):
            lines.extend(piece.lines)
            yield piece

    outcome = _store(keeping_lines(), origin, summary)
    try:
        archive().append(lines)
    except OSError as error:
        raise ArchiveFailed(str(error)) from error
    reach("otlp.archived")
    return outcome


def _store(pieces: Iterator[Piece], origin: Origin, summary: Summary) -> Outcome:
    return store(pieces, cluster_id=origin.cluster_id, mode=origin.mode, summary=summary)


def _log(piece: Piece, origin: Origin) -> None:
    for kind, rows in piece.rows.items():
        for row in rows:
            log.info(NAME, cluster_id=origin.cluster_id, source_mode=origin.mode, **fields(kind, row))
