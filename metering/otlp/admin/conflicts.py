"""What contradicts stored events: what stands, what arrived, and in which fields they differ."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest

from config.readonly_admin import Code, Document, Filter, Lines, Link, Option, ReadOnlyAdmin, State
from metering.otlp.admin.of_cluster import cluster_filter, cluster_link
from metering.otlp.fields import Kind
from metering.otlp.models import Conflict, ConflictReason, LlmBillingEvent, ResourceUtilizationEvent

MODELS: dict[str, Any] = {Kind.LLM_BILLING: LlmBillingEvent, Kind.RESOURCE_UTILIZATION: ResourceUtilizationEvent}


def _by_reason(pages: ReadOnlyAdmin) -> Sequence[Option]:
    return [
        Option(reason.value, str(reason.label).partition(":")[0], Q(reason=reason.value), ("-conflict_id",))
        for reason in ConflictReason
    ]


class ConflictAdmin(ReadOnlyAdmin):
    slug = "conflicts"
    label = "Conflicts"
    group = "Events"
    position = 83
    about = (
        "Events that contradict what was stored before them. What was stored first stands and is billed once; these are"
        " billed nowhere. The runbook page OtlpConflicts says what to do."
    )
    order = ("-conflict_id",)
    filters = (Filter("reason", "Reason", _by_reason), cluster_filter("-conflict_id"))
    lookups = ("event_id",)
    deferred = ("arrived",)
    list_display = ("event_id", "why", "cluster", "standing_cluster", "differs", "arrivals", "first_at", "last_at")
    fieldsets = (
        ("Conflict", {"fields": ("why", "differs", "arrivals", "first_at", "last_at")}),
        ("What arrived", {"fields": ("cluster", "kind", "occurred_at", "arrived_sha256")}),
        ("What stands", {"fields": ("standing_cluster", "standing_occurred_at", "standing_event")}),
    )
    headings = {"event_id": "Event", "first_at": "First", "last_at": "Last", "standing_occurred_at": "Occurred at"}

    @admin.display(description="reason")
    def why(self, row: Conflict) -> State:
        label = str(ConflictReason(row.reason).label)
        return State("mismatched", label.partition(":")[0], label)

    @admin.display(description="arrived from")
    def cluster(self, row: Conflict) -> Link:
        return cluster_link(row.cluster_id)

    @admin.display(description="stands from")
    def standing_cluster(self, row: Conflict) -> Link:
        return cluster_link(row.standing_cluster_id)

    @admin.display(description="differs in")
    def differs(self, row: Conflict) -> list[Code]:
        return [Code(name) for name in row.fields.split(",") if name]

    @admin.display(description="event")
    def standing_event(self, row: Conflict) -> Link:
        pages = self.sibling(MODELS[row.kind])
        return Link(
            Lines(row.event_id, row.standing_occurred_at), pages.url_of_key(row.event_id, row.standing_occurred_at)
        )

    def title_of(self, row: Conflict) -> str:
        return f"Conflict of {row.event_id}"

    def beside_row(self, row: Conflict, request: HttpRequest) -> dict[str, Any]:
        return {"documents": [("What arrived", f"{len(row.arrived):,} characters", Document(row.arrived), row.arrived)]}
