"""Reservations of quota: what is held now, and how each ended."""

from collections.abc import Sequence

from django.contrib import admin
from django.db.models import Q

from billing.commercial.models import (
    EntitlementPeriod,
    ReservationState,
    RuntimeReservation,
    StoredPlan,
    SweepFinding,
    UsageMeterEvent,
)
from config.owners import with_markers
from config.readonly_admin import SECTIONS, Code, Filter, Lines, Link, Option, ReadOnlyAdmin, Span, Table, state_of

LATEST = 20
"""Generations whose markers the page of a reservation links to."""


def _queues(pages: ReadOnlyAdmin) -> Sequence[Option]:
    held = Q(state=ReservationState.RESERVED)
    return [Option("held", "held, longest first", held, ("reserved_at", "reservation_id"))]


class ReservationAdmin(ReadOnlyAdmin):
    slug = "quota-reservations"
    label = "Quota reservations"
    group = "Quota"
    position = 93
    about = "Quota set aside before work and ended as its marker says, latest first. An operation is a keyed hash."
    order = ("-reservation_id",)
    filters = (Filter("queue", "Show", _queues),)
    lookups = ("reservation_id",)
    related = ("meter",)
    list_display = ("reservation_id", "state", "counted", "units", "generation", "business", "reserved_at", "ended")
    headings = {
        "reservation_id": "Reservation",
        "reserved_at": "Reserved",
        "as_of": "Counts at",
        "ended_at": "Ended",
        "operation_sha256": "Operation, hashed",
    }
    fieldsets = (
        ("Reservation", {"fields": ("state", "generation", "units", "counted", "provider_code")}),
        ("What for", {"fields": ("business", "operation_sha256", "period_link", "plan_link")}),
        ("Time", {"fields": ("as_of", "reserved_at", "ended_at", "ended_by", "held_for")}),
    )

    @admin.display(description="counts")
    def counted(self, row: RuntimeReservation) -> Code:
        return Code(f"{row.meter.tool}/{row.meter.dimension}")

    @admin.display(description="quantity")
    def units(self, row: RuntimeReservation) -> Lines:
        return Lines(row.quantity, row.meter.quantity_basis)

    @admin.display(description="ended")
    def ended(self, row: RuntimeReservation) -> Lines | None:
        if row.ended_at is None or row.ended_by is None:
            return None
        return Lines(row.ended_at, f"by {row.ended_by}")

    @admin.display(description="period")
    def period_link(self, row: RuntimeReservation) -> Link:
        return Link(row.period_id, self.sibling(EntitlementPeriod).url_of_key(row.period_id))

    @admin.display(description="plan")
    def plan_link(self, row: RuntimeReservation) -> Link:
        return Link(Code(row.meter.plan_id), self.sibling(StoredPlan).url_of_key(row.meter.plan_id))

    @admin.display(description="held for")
    def held_for(self, row: RuntimeReservation) -> Span:
        return Span(row.reserved_at, row.ended_at)

    def title_of(self, row: RuntimeReservation) -> str:
        return f"Quota reservation {row.reservation_id}"

    def tables(self, row: RuntimeReservation) -> list[Table]:
        pages, sweeps = self.sibling(UsageMeterEvent), self.sibling(SweepFinding)
        usage = list(UsageMeterEvent.objects.using(self.alias).filter(reservation_id=row.reservation_id))
        pages.prepare(usage)
        found = SweepFinding.objects.using(self.alias).filter(reservation_id=row.reservation_id)
        return [
            pages.table(usage, title="Usage", empty="Nothing was counted."),
            sweeps.table(list(found.order_by("generation")), title="Found by sweeps", empty="Nothing of it was left."),
            Table("Markers", ("Generation", "Kept by"), self._markers(row), note="in the business's own database"),
        ]

    def _markers(self, row: RuntimeReservation) -> tuple[tuple[object, ...], ...]:
        """Where the evidence of the latest ended generations stands; another owner's database is not read here."""
        if row.business not in {owner.name for owner in with_markers()}:
            return ()
        last = row.generation if row.state != ReservationState.RESERVED else row.generation - 1
        section = SECTIONS[row.business]
        return tuple(
            (number, Link(row.business, section.row_url("markers", row.reservation_id, number)))
            for number in range(last, max(0, last - LATEST), -1)
        )


def state_link(pages: ReadOnlyAdmin, reservation_id: object, state: str) -> Link:
    """A state that leads to its reservation."""
    return Link(state_of(ReservationState, state), pages.sibling(RuntimeReservation).url_of_key(reservation_id))
