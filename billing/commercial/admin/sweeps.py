"""What sweeps found: reservations that their processes left."""

from django.contrib import admin

from billing.commercial.admin.reservations import state_link
from billing.commercial.models import SweepFinding
from config.readonly_admin import Link, ReadOnlyAdmin, Span


class SweepAdmin(ReadOnlyAdmin):
    slug = "sweeps"
    label = "Sweeps"
    group = "Quota"
    position = 95
    about = (
        "Reservations that a sweep ended because their processes were killed or could not reach billing, latest first."
        " The runbook page QuotaSweepFindings says what to do about many."
    )
    order = ("-found_at", "-reservation_id", "-generation")
    lookups = ("reservation_id",)
    list_display = ("reservation_id", "generation", "ended_as", "business", "held_for", "found_at")
    headings = {"reservation_id": "Reservation", "found_at": "Found"}
    fieldsets = (
        ("Finding", {"fields": ("ended_as", "business", "generation")}),
        ("Time", {"fields": ("reserved_at", "found_at", "held_for")}),
    )

    @admin.display(description="ended as")
    def ended_as(self, row: SweepFinding) -> Link:
        return state_link(self, row.reservation_id, row.outcome)

    @admin.display(description="held for")
    def held_for(self, row: SweepFinding) -> Span:
        return Span(row.reserved_at, row.found_at)

    def title_of(self, row: SweepFinding) -> str:
        return f"Left reservation {row.reservation_id}, generation {row.generation}"
