"""Markers, to be read in the section of every owner whose business code reserves quota."""

from django.contrib import admin

from billing.commercial.markers.models import Marker, MarkerKind
from config.owners import with_markers
from config.readonly_admin import SECTIONS, Link, ReadOnlyAdmin


class MarkerAdmin(ReadOnlyAdmin):
    slug = "markers"
    label = "Markers"
    group = "Transactions"
    position = 60
    about = "How business transactions ended: one row per thing that may commit once. It is the only evidence."
    order = ("-subject_id", "-generation")
    lookups = ("subject_id",)
    list_display = ("subject_id", "generation", "verdict", "kind", "reservation", "decided_at")
    headings = {"subject_id": "Subject", "decided_at": "Decided"}
    fieldsets = (("Marker", {"fields": ("verdict", "kind", "generation", "reservation", "decided_at")}),)

    @admin.display(description="reservation")
    def reservation(self, row: Marker) -> Link | None:
        if row.kind != MarkerKind.RESERVATION:
            return None
        return Link(row.subject_id, SECTIONS["billing"].row_url("quota-reservations", row.subject_id))

    def title_of(self, row: Marker) -> str:
        return f"Marker of {row.subject_id}, generation {row.generation}"


for owner in with_markers():
    SECTIONS[owner.name].register(Marker, MarkerAdmin)
