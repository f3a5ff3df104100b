"""What operators may look at: one operation, its timeline page by page, and where an exact identifier leads (O26).

Every function is one statement on the read connection, so what it returns is one state of the database. Rows of other
projection versions than the active one are never shown. Pages go by key, not by offset: page 1,000 costs what page 1
costs, and what is applied meanwhile neither repeats nor hides an entry that was there before.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.db import connections

from config.owners import owner_named
from operations.timelines.models import IdentifierKind, LinkState, ReservationState
from outbox.contracts.contract import ContentReference, instant, timestamp
from outbox.contracts.first_release import PROJECTION_NAME

READ_ALIAS = owner_named("core").read_alias
PAGE = 50
MAX_PAGE = 500
"""Entries of one page."""
MAX_HITS = 50
"""Where a correlation id is shared by more operations than this, the search says that there are more."""
MAX_IDENTIFIER = 200


@dataclass(frozen=True, slots=True)
class Operation:
    """One verified run and what is known of its reservation. Amounts are pico-units of `currency`."""

    operation_id: str
    projection_version: str
    run_id: str
    run_event_id: str
    tenant_kind: str
    tenant_id: str
    workspace_id: str
    project_id: str | None
    correlation_id: str
    billing_account_id: str
    run_admission_manifest: ContentReference
    run_created_at: datetime
    reservation_state: ReservationState
    expected_reservation_id: str
    reservation_event_id: str | None
    currency: str | None
    hold_amount_picos: int | None
    reserved_at: datetime | None


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page of a timeline ended."""

    occurred_at: datetime
    event_id: str

    def __str__(self) -> str:
        return f"{timestamp(self.occurred_at)}~{self.event_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The position in the text of one. Raises `ValueError`."""
        occurred_at, _, event_id = text.partition("~")
        moment = instant(occurred_at)
        if moment.tzinfo is None:
            raise ValueError("A position needs a time zone.")
        return cls(moment, str(UUID(event_id)))


@dataclass(frozen=True, slots=True)
class Entry:
    """One applied event."""

    occurred_at: datetime
    event_id: str
    event_type: str
    event_schema_version: str
    producer: str
    aggregate_id: str
    aggregate_revision: int
    correlation_id: str
    causation_id: str | None
    applied_at: datetime


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Entries in the order in which they occurred; `next` is None on the last page."""

    entries: tuple[Entry, ...]
    next: Position | None


@dataclass(frozen=True, slots=True)
class Hit:
    """Where an identifier leads: to an operation, or (without one) to the unlinked reservation of `event_id`."""

    kind: IdentifierKind
    projection_version: str
    operation_id: str | None
    event_id: str | None
    unlinked_state: LinkState | None


@dataclass(frozen=True, slots=True)
class Hits:
    """What carries an exact identifier in the active projection. `more`: not all of it is here."""

    hits: tuple[Hit, ...]
    more: bool


_ACTIVE = f"(SELECT projection_version FROM projection_active_pointers WHERE projection_name = '{PROJECTION_NAME}')"

_OF_OPERATION = (
    "operation_id",
    "projection_version",
    "run_id",
    "run_event_id",
    "tenant_kind",
    "tenant_id",
    "workspace_id",
    "project_id",
    "correlation_id",
    "billing_account_id",
    "run_admission_manifest_ref",
    "run_admission_manifest_schema_version",
    "run_admission_manifest_digest",
    "run_created_at",
    "reservation_state",
    "expected_reservation_id",
    "reservation_event_id",
    "currency",
    "hold_amount_picos",
    "reserved_at",
)
OPERATION = f"""
SELECT {", ".join(_OF_OPERATION)}
  FROM operation_summaries
 WHERE operation_id = %(operation)s AND projection_version = {_ACTIVE}
"""

TIMELINE = f"""
SELECT e.occurred_at, e.event_id::text, e.event_type, e.event_schema_version, e.producer, e.aggregate_id,
       e.aggregate_revision, e.correlation_id, e.causation_id, e.applied_at
  FROM timeline_entries e
 WHERE e.operation_id = %(operation)s AND e.projection_version = {_ACTIVE}
   AND (e.occurred_at, e.event_id) > (%(occurred_at)s::timestamptz, %(event_id)s::uuid)
   AND EXISTS (SELECT FROM operation_summaries s
                WHERE s.operation_id = %(operation)s AND s.projection_version = {_ACTIVE})
 ORDER BY e.occurred_at, e.event_id
 LIMIT %(limit)s
"""
"""Without a verified run there is no operation, and so no timeline."""

SEARCH = f"""
(SELECT 'operation', projection_version, operation_id, NULL, NULL FROM operation_summaries
  WHERE operation_id = %(value)s AND projection_version = {_ACTIVE})
UNION ALL
(SELECT 'run', projection_version, operation_id, NULL, NULL FROM operation_summaries
  WHERE run_id = %(value)s AND projection_version = {_ACTIVE})
UNION ALL
(SELECT i.kind, i.projection_version,
        coalesce(i.operation_id, CASE WHEN p.state = 'linked' THEN p.operation_id END), i.event_id::text,
        CASE WHEN p.state <> 'linked' THEN p.state END
   FROM exact_identifiers i
   LEFT JOIN pending_unlinked_reservations p
     ON i.operation_id IS NULL AND p.event_id = i.event_id AND p.projection_version = i.projection_version
  WHERE i.value = %(value)s AND i.projection_version = {_ACTIVE}
  ORDER BY i.kind, i.event_id
  LIMIT %(limit)s)
"""


def operation(operation_id: str, *, using: str = READ_ALIAS) -> Operation | None:
    """The summary of one operation, None if its run event has not been verified."""
    rows = _rows(OPERATION, {"operation": operation_id}, using) if _is_identifier(operation_id) else []
    if not rows:
        return None
    row = dict(zip(_OF_OPERATION, rows[0], strict=True))
    manifest = {part: row.pop(f"run_admission_manifest_{part}") for part in ("ref", "schema_version", "digest")}
    hold, reservation = row.pop("hold_amount_picos"), row.pop("reservation_event_id")
    run_event_id, state = row.pop("run_event_id"), row.pop("reservation_state")
    return Operation(
        **row,
        run_event_id=str(run_event_id),
        run_admission_manifest=ContentReference(**manifest),
        reservation_state=ReservationState(state),
        reservation_event_id=None if reservation is None else str(reservation),
        hold_amount_picos=None if hold is None else int(hold),
    )


def timeline(
    operation_id: str, *, after: Position | None = None, limit: int = PAGE, using: str = READ_ALIAS
) -> TimelinePage:
    """One page of an operation's timeline, empty if there is no such operation. `limit` is held within 1 to 500."""
    size = max(1, min(limit, MAX_PAGE))
    if not _is_identifier(operation_id):
        return TimelinePage((), None)
    parameters = {
        "operation": operation_id,
        "occurred_at": timestamp(after.occurred_at) if after else "-infinity",
        "event_id": after.event_id if after else str(UUID(int=0)),
        "limit": size + 1,
    }
    entries = tuple(Entry(*row) for row in _rows(TIMELINE, parameters, using))
    page = entries[:size]
    last = Position(page[-1].occurred_at, page[-1].event_id) if len(entries) > size else None
    return TimelinePage(page, last)


def search(identifier: str, *, using: str = READ_ALIAS) -> Hits:
    """Everything that carries exactly this run, reservation, event, operation, correlation or causation id."""
    value = identifier.strip()
    if not _is_identifier(value):
        return Hits((), False)
    rows = _rows(SEARCH, {"value": value, "limit": MAX_HITS + 1}, using)
    hits = dict.fromkeys(
        Hit(IdentifierKind(kind), version, operation_id, event_id, LinkState(state) if state else None)
        for kind, version, operation_id, event_id, state in rows
    )
    return Hits(tuple(hits)[:MAX_HITS], len(rows) > MAX_HITS)


def _is_identifier(text: str) -> bool:
    return 0 < len(text) <= MAX_IDENTIFIER and text.isascii() and text.isprintable()


def _rows(statement: str, parameters: dict[str, Any], using: str) -> list[tuple[Any, ...]]:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())
