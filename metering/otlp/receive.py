"""One request's body, from its bytes to its sink, in a thread of its own. Everything it does can be done again.

Large requests (by their bytes, their records, or one of these) are worked on one at a time, so a process stays small
and has a thread for others. They wait outside the threads; one that turns out large gives its thread up.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections

from metering.clusters.authenticate import Authenticated
from metering.clusters.models import Mode, Sink
from metering.otlp import days, metrics
from metering.otlp.decode import Describe, Piece, Summary, decode
from metering.otlp.fields import Field
from metering.otlp.inflate import inflate
from metering.otlp.json_form import to_protobuf
from metering.otlp.read_record import Rules
from metering.otlp.sinks import Origin, put, sink_of
from metering.otlp.split import is_heavy
from metering.otlp.store import ALIAS, Outcome
from metering.otlp.times import micros
from metering.otlp.wire import TooLarge

ATTEMPTS = 3
"""What is over at once is tried again at once; then the sender does it."""
PASSING = frozenset({"40001", "40P01", "57P01", "57P02", "57P03"})
"""SQLSTATEs of a deadlock, and of a server that ends sessions or is just starting. A lost connection has none."""
CLASHES_LOGGED = 100
MAX_JSON_BYTES = 8 * 1024 * 1024
LARGE_JSON = 1024 * 1024
"""OTLP/JSON becomes a tree of objects, tens of times its size at worst."""

LARGE = 4 * 1024 * 1024
"""Bytes, inflated, from which a request is large."""

log = structlog.get_logger("otlp.receive")


class TurnsOutLarge(Exception):
    """The request is large and has no turn. Nothing was done; receive it again when it has one."""


@dataclass(frozen=True, slots=True)
class Request:
    """A complete body and what its headers said about it; `has_turn` while no other large one is in work here."""

    body: bytes
    is_gzip: bool
    is_json: bool
    who: Authenticated
    received_at: datetime
    has_turn: bool = False

    @property
    def large(self) -> int:
        """The bytes from which it is large."""
        return LARGE_JSON if self.is_json else LARGE

    @property
    def looks_large(self) -> bool:
        """Whether the body says that it is large. Gzip's own word may be a lie."""
        said = int.from_bytes(self.body[-4:], "little") if self.is_gzip else 0
        return max(said, len(self.body)) > self.large


def receive(request: Request) -> Summary:
    """Decode and sink one request; what it held. It is in its sink when this returns.

    Raises `TurnsOutLarge`, `Malformed` and `TooLarge` for the body, `ArchiveFailed`, `days.NotYet` and Django's
    database errors; then the sender has to come again, and finds what was stored meanwhile as duplicates.
    """
    body = _plain(request)
    for left in reversed(range(ATTEMPTS)):
        try:
            summary, outcome = _put(request, body)
            break
        except days.Many as many:
            days.make(many)
        except days.Gone:
            days.refresh()
            if not left:
                raise
        except (OperationalError, InterfaceError) as error:
            connections[ALIAS].close()
            if not left or not _passes(error):
                raise
    else:
        raise days.NotYet
    _tell(request.who, summary, outcome)
    return summary


def _passes(error: Exception) -> bool:
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state in PASSING or state.startswith("08")


def _plain(request: Request) -> bytes:
    """The body as protobuf. Raises `TurnsOutLarge`."""
    most = MAX_JSON_BYTES if request.is_json else settings.OTLP_MAX_INFLATED_BYTES
    body = request.body
    at_once = most if request.has_turn else min(most, request.large)
    try:
        if request.is_gzip:
            body = inflate(body, most=at_once)
    except TooLarge:
        if request.has_turn:
            raise
        raise TurnsOutLarge from None
    if not request.has_turn and len(body) > at_once:
        raise TurnsOutLarge
    if len(body) > most:
        raise TooLarge(f"The body has more than {most} bytes.")
    if request.is_json:
        body = to_protobuf(body)
    if not request.has_turn and is_heavy(body):
        raise TurnsOutLarge
    return body


def _put(request: Request, body: bytes) -> tuple[Summary, Outcome | None]:
    who, now = request.who, micros(request.received_at)
    summary = Summary()
    sink = sink_of(who.sink)
    rules = Rules(
        needs_manager_key=who.mode == Mode.GATEWAY,
        latest=now + int(settings.OTLP_FUTURE_LIMIT * 1_000_000),
        earliest=days.earliest() if sink is not Sink.LOGGING else days.NOTHING_GONE,
    )

    def decoded(describe: Describe | None) -> Iterator[Piece]:
        return decode(body, rules=rules, summary=summary, describe=describe)

    origin = Origin(cluster_id=str(who.cluster_id), mode=who.mode.value, received_at=request.received_at)
    return summary, put(decoded, sink=sink, origin=origin, summary=summary)


def _tell(who: Authenticated, summary: Summary, outcome: Outcome | None) -> None:
    """Count and log what happened, after it has."""
    metrics.ingested(summary.accepted.total())
    if outcome is not None:
        clashes = Counter[str]()
        for clash in outcome.clashes:
            clashes[clash.reason] += clash.arrivals
        metrics.stored(new=outcome.stored.total(), duplicates=outcome.duplicates.total())
        metrics.conflicts(clashes)
        for clash in outcome.clashes[:CLASHES_LOGGED]:
            log.error(
                "otlp_conflict",
                cluster_id=str(who.cluster_id),
                event_type=clash.kind,
                event_id=clash.event_id,
                reason=clash.reason,
                fields=clash.fields,
            )
    if summary.disagreements.counts:
        metrics.disagreements(summary.disagreements.counts)
    if summary.dropped:
        _tell_dropped(who, summary)


def _tell_dropped(who: Authenticated, summary: Summary) -> None:
    counts = Counter[Field]()
    for (_, reason), count in summary.dropped.items():
        counts[reason] += count
    metrics.dropped(counts)
    for dropped in summary.samples:
        log.warning(
            "otlp_record_dropped",
            cluster_id=str(who.cluster_id),
            event_type=dropped.kind,
            event_id=dropped.event_id,
            reason=dropped.reason,
        )
    if summary.rejected > len(summary.samples):
        log.warning("otlp_records_dropped", cluster_id=str(who.cluster_id), count=summary.rejected)
