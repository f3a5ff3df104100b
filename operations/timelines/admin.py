"""Operations, their timelines, and reservations that wait for their run, as the projector knows them."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import BadRequest
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse

from config.owners import OWNERS
from config.readonly_admin import (
    SECTIONS,
    Amount,
    Code,
    Document,
    Filter,
    Link,
    Option,
    ReadOnlyAdmin,
    Reference,
    Span,
    key_text,
)
from operations.projector.models import ActiveProjection
from operations.timelines.models import LinkState, OperationSummary, PendingUnlinkedReservation
from operations.timelines.reads import Entry, Position, timeline
from outbox.contracts.first_release import PROJECTION_NAME

PRODUCERS = frozenset(owner.name for owner in OWNERS if owner.produces)
ENTRIES = 50
"""Timeline entries on one page."""


def event_link(producer: str, event_id: object) -> Any:
    """The event, linked to its page in the section of its producer."""
    if producer not in PRODUCERS:
        return event_id
    return Link(event_id, reverse(f"{producer}:events_row", args=[str(event_id)]))


class ActiveVersionAdmin(ReadOnlyAdmin):
    """Pages of the read model: rows of the active projection version only."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        pointer = ActiveProjection.objects.using(self.alias).filter(projection_name=PROJECTION_NAME)
        return super().get_queryset(request).filter(projection_version=pointer.values("projection_version")[:1])


class OperationAdmin(ActiveVersionAdmin):
    slug = "operations"
    label = "Operations"
    group = "Operations"
    position = 1
    about = "One row per run whose event was verified, latest first; open one for its timeline."
    key = ("operation_id",)
    order = ("-id",)
    lookups = ("operation_id",)
    row_template = "operator/operation.html"
    list_display = ("operation_id", "run", "tenant", "account", "reservation_state", "hold", "run_created_at")
    fieldsets = (
        ("Run", {"fields": ("run_id", "run_created_at", "tenant", "workspace_id", "project_id", "correlation_id")}),
        ("Reservation", {"fields": (
            "reservation_state", "hold", "reserved_at", "expected_reservation_id", "reservation_event", "account",
        )}),
        ("Admission manifest", {"fields": ("manifest",)}),
        ("Projection", {"fields": ("projection_version", "run_event")}),
    )  # fmt: skip

    @admin.display(description="run")
    def run(self, row: OperationSummary) -> Code:
        return Code(row.run_id)

    @admin.display(description="tenant")
    def tenant(self, row: OperationSummary) -> Any:
        return [row.tenant_kind, Code(row.tenant_id)]

    @admin.display(description="billing account")
    def account(self, row: OperationSummary) -> Link:
        return Link(
            Code(row.billing_account_id), reverse("billing:accounts_row", args=[key_text(row.billing_account_id)])
        )

    @admin.display(description="held")
    def hold(self, row: OperationSummary) -> Amount | None:
        if row.hold_amount_picos is None or row.currency is None:
            return None
        return Amount(int(row.hold_amount_picos), row.currency)

    @admin.display(description="manifest")
    def manifest(self, row: OperationSummary) -> Reference:
        return Reference(
            row.run_admission_manifest_ref,
            row.run_admission_manifest_schema_version,
            row.run_admission_manifest_digest_algorithm_version,
            row.run_admission_manifest_digest,
        )

    @admin.display(description="run event")
    def run_event(self, row: OperationSummary) -> Any:
        return event_link("core", row.run_event_id)

    @admin.display(description="reservation event")
    def reservation_event(self, row: OperationSummary) -> Any:
        return event_link("core", row.reservation_event_id) if row.reservation_event_id else None

    def title_of(self, row: OperationSummary) -> str:
        return f"Operation {row.operation_id}"

    def beside_row(self, row: OperationSummary, request: HttpRequest) -> dict[str, Any]:
        page = timeline(row.operation_id, after=_position(request), limit=ENTRIES, using=self.alias)
        here = self.url_of(row)
        return {
            "entries": [_entry(entry) for entry in page.entries],
            "first_url": here if "after" in request.GET else None,
            "next_url": f"{here}?{urlencode({'after': str(page.next)})}" if page.next else None,
        }


def _position(request: HttpRequest) -> Position | None:
    text = request.GET.get("after", "")
    try:
        return Position.parse(text) if text else None
    except ValueError:
        raise BadRequest("This page address is not one that a timeline made. Start from the operation.") from None


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "at": entry.occurred_at,
        "what": Code(entry.event_type),
        "producer": entry.producer,
        "event": event_link(entry.producer, entry.event_id),
        "aggregate": Code(entry.aggregate_id),
        "revision": entry.aggregate_revision,
        "caused_by": event_link(entry.producer, entry.causation_id) if entry.causation_id else None,
        "delay": Span(entry.occurred_at, entry.applied_at),
    }


def _states(pages: ReadOnlyAdmin) -> list[Option]:
    return [
        Option(state.value, str(state.label).partition(":")[0], Q(state=state.value), ("recorded_at", "id"))
        for state in LinkState
    ]


class UnlinkedAdmin(ActiveVersionAdmin):
    slug = "unlinked"
    label = "Unlinked reservations"
    group = "Operations"
    position = 2
    about = "Wallet reservations that arrived before their run, or contradict it. No operation is built from one alone."
    key = ("event_id",)
    order = ("-id",)
    deferred = ("event_envelope",)
    filters = (Filter("state", "State", _states),)
    lookups = ("event_id",)
    list_display = ("event_id", "state", "run", "reservation", "recorded_at", "decided_at", "disagreements")
    fieldsets = (
        ("State", {"fields": ("state", "recorded_at", "decided_at", "disagreements", "run_event")}),
        ("Reservation", {"fields": ("billing_reservation_id", "run_id", "operation_id", "occurred_at", "event")}),
        ("Evidence", {"fields": ("event_envelope_sha256", "projection_version")}),
    )

    @admin.display(description="run")
    def run(self, row: PendingUnlinkedReservation) -> Code:
        return Code(row.run_id)

    @admin.display(description="reservation")
    def reservation(self, row: PendingUnlinkedReservation) -> Code:
        return Code(row.billing_reservation_id)

    @admin.display(description="event")
    def event(self, row: PendingUnlinkedReservation) -> Any:
        return event_link("core", row.event_id)

    @admin.display(description="run event")
    def run_event(self, row: PendingUnlinkedReservation) -> Any:
        return event_link("core", row.run_event_id) if row.run_event_id else None

    def title_of(self, row: PendingUnlinkedReservation) -> str:
        return f"Reservation {row.billing_reservation_id}"

    def beside_row(self, row: PendingUnlinkedReservation, request: HttpRequest) -> dict[str, Any]:
        size = len(row.event_envelope.encode())
        return {
            "documents": [("Envelope", f"canonical, {size:,} bytes", Document(row.event_envelope), row.event_envelope)]
        }


SECTIONS["core"].register(OperationSummary, OperationAdmin)
SECTIONS["core"].register(PendingUnlinkedReservation, UnlinkedAdmin)
