"""Quarantine: what can not be applied, grouped by why, what and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db import connections
from django.db.models import Q
from django.http import HttpRequest

from config.readonly_admin import Code, Filter, Lines, Link, Option, ReadOnlyAdmin, State, Table
from outbox.models import DeliveryAttemptStart, OutboxDelivery, OutboxEvent, OutboxQuarantine

COUNT_CAP = 10_000
MOST_GROUPS = 200
"""Groups shown; reasons are a closed set of codes, so more than this means that something else is wrong."""

GROUPS = f"""
WITH RECURSIVE groups AS (
    (SELECT reason, event_type, destination, 1 AS nth FROM outbox_quarantine
      ORDER BY reason, event_type, destination LIMIT 1)
    UNION ALL
    SELECT n.reason, n.event_type, n.destination, g.nth + 1 FROM groups g CROSS JOIN LATERAL (
        SELECT q.reason, q.event_type, q.destination FROM outbox_quarantine q
         WHERE (q.reason, q.event_type, q.destination) > (g.reason, g.event_type, g.destination)
         ORDER BY q.reason, q.event_type, q.destination LIMIT 1) n
     WHERE g.nth < {MOST_GROUPS}
)
SELECT g.reason, g.event_type, g.destination, c.number, f.quarantined_at AS first_at, l.quarantined_at AS last_at
  FROM groups g
 CROSS JOIN LATERAL (SELECT count(*) AS number FROM (
        SELECT FROM outbox_quarantine q
         WHERE q.reason = g.reason AND q.event_type = g.event_type AND q.destination = g.destination
         LIMIT {COUNT_CAP + 1}) counted) c
 CROSS JOIN LATERAL (
        SELECT q.quarantined_at FROM outbox_quarantine q
         WHERE q.reason = g.reason AND q.event_type = g.event_type AND q.destination = g.destination
         ORDER BY q.quarantined_at LIMIT 1) f
 CROSS JOIN LATERAL (
        SELECT q.quarantined_at FROM outbox_quarantine q
         WHERE q.reason = g.reason AND q.event_type = g.event_type AND q.destination = g.destination
         ORDER BY q.quarantined_at DESC LIMIT 1) l
"""
"""Jumps from group to group in the index, so it costs per group and not per row."""


@dataclass(frozen=True, slots=True)
class Group:
    """Quarantined deliveries that share reason, event type and destination. `number` stops at `COUNT_CAP` + 1."""

    reason: str
    event_type: str
    destination: str
    number: int
    first_at: datetime
    last_at: datetime

    @property
    def key(self) -> str:
        """Its name in an address."""
        return f"{self.reason}~{self.event_type}~{self.destination}"

    @property
    def shown_number(self) -> Any:
        """The number as a cell."""
        return self.number if self.number <= COUNT_CAP else f"more than {COUNT_CAP:,}"


def groups_of(alias: str) -> list[Group]:
    """Every group, the latest first, in one statement."""
    with connections[alias].cursor() as cursor:
        cursor.execute(GROUPS)
        return sorted((Group(*row) for row in cursor.fetchall()), key=lambda group: group.last_at, reverse=True)


def by_group(pages: ReadOnlyAdmin) -> Sequence[Option]:
    """One choice per group."""
    return [
        Option(
            group.key,
            f"{group.reason} · {group.event_type} · {group.destination}",
            Q(reason=group.reason, event_type=group.event_type, destination=group.destination),
            ("-quarantined_at", "-event_id"),
        )
        for group in groups_of(pages.alias)
    ]


class QuarantineAdmin(ReadOnlyAdmin):
    slug = "quarantine"
    label = "Quarantine"
    group = "Outbox"
    position = 50
    about = (
        "Deliveries that can not be applied, with their evidence. Nothing is skipped, forced, edited or replayed from"
        " here; the runbook page QuarantineGrows says what to do."
    )
    order = ("-quarantined_at", "-event_id", "-destination")
    lookups = ("event_id",)
    filters = (Filter("group", "Group", by_group),)
    list_template = "operator/quarantine.html"
    list_display = ("event_id", "what", "why", "detail", "quarantined_at")
    headings = {"quarantined_at": "Since", "acknowledged_at": "Acknowledged", "case_id": "Case"}
    fieldsets = (
        ("Quarantine", {"fields": ("why", "detail", "quarantined_at", "acknowledged_at", "case_id")}),
        ("Delivery", {"fields": ("event", "event_type", "schema_version", "delivery", "attempt")}),
        ("Evidence", {"fields": ("event_envelope_sha256", "event_envelope_digest_algorithm_version")}),
    )

    @admin.display(description="what")
    def what(self, row: OutboxQuarantine) -> Lines:
        return Lines(Code(row.event_type), f"to {row.destination}")

    @admin.display(description="reason")
    def why(self, row: OutboxQuarantine) -> State:
        return State("quarantined", row.reason, "The reason that the last attempt gave.")

    @admin.display(description="event")
    def event(self, row: OutboxQuarantine) -> Link:
        return Link(row.event_id, self.sibling(OutboxEvent).url_of_key(row.event_id))

    @admin.display(description="delivery")
    def delivery(self, row: OutboxQuarantine) -> Link:
        return Link(f"to {row.destination}", self.sibling(OutboxDelivery).url_of_key(row.event_id, row.destination))

    @admin.display(description="last attempt")
    def attempt(self, row: OutboxQuarantine) -> Link:
        return Link(row.attempt_id, self.sibling(DeliveryAttemptStart).url_of_key(row.attempt_id))

    def title_of(self, row: OutboxQuarantine) -> str:
        return f"Quarantined: {row.reason}"

    def beside_row(self, row: OutboxQuarantine, request: HttpRequest) -> dict[str, Any]:
        return {"subtitle": row.event_id}

    def beside_list(self, request: HttpRequest) -> dict[str, Any]:
        groups = groups_of(self.alias)
        chosen = request.GET.get("group", "")
        cells = tuple(
            (
                Link(State("quarantined", group.reason), self.list_url(group=group.key)),
                Code(group.event_type),
                group.destination,
                group.shown_number,
                group.first_at,
                group.last_at,
            )
            for group in groups
            if not chosen or group.key == chosen
        )
        headings = ("Reason", "Event type", "Destination", "Deliveries", "First", "Last")
        return {"groups": Table("By reason, event type and destination", headings, cells, "Nothing is quarantined.")}
