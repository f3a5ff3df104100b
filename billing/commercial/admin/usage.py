"""Usage, and what it cost."""

from collections.abc import Sequence

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest

from billing.commercial.models import CostEvent, EntitlementPeriod, RuntimeReservation, UsageMeterEvent
from billing.pricing.models import StoredPriceBook
from config.readonly_admin import Amount, Code, Filter, Lines, Link, Option, ReadOnlyAdmin, Table

LONGEST_NUMBER = 18
"""Digits of a period's number."""


def _of_period(pages: ReadOnlyAdmin, value: str) -> Option | None:
    if not (value.isascii() and value.isdigit() and len(value) <= LONGEST_NUMBER):
        return None
    return Option(value, f"period {value}", Q(period_id=int(value)), ("-reservation_id",))


class UsageAdmin(ReadOnlyAdmin):
    slug = "usage"
    label = "Usage"
    group = "Quota"
    position = 94
    about = "What was used: one event for each reservation whose work committed, latest first. It never changes."
    order = ("-reservation_id",)
    filters = (Filter("period", "Period", find=_of_period),)
    lookups = ("reservation_id",)
    list_display = ("reservation_link", "counted", "units", "cost_amount", "period_link", "occurred_at", "recorded")
    headings = {"occurred_at": "Counts at", "operation_sha256": "Operation, hashed"}
    fieldsets = (
        ("Usage", {"fields": ("counted", "units", "cost_amount", "provider_code", "meter_version")}),
        ("Where from", {"fields": ("generation", "operation_sha256", "period_link")}),
        ("Time", {"fields": ("occurred_at", "recorded")}),
    )

    @admin.display(description="reservation")
    def reservation_link(self, row: UsageMeterEvent) -> Link:
        return Link(row.reservation_id, self.url_of(row))

    @admin.display(description="counts")
    def counted(self, row: UsageMeterEvent) -> Code:
        return Code(f"{row.tool}/{row.dimension}")

    @admin.display(description="quantity")
    def units(self, row: UsageMeterEvent) -> Lines:
        return Lines(row.quantity, row.quantity_basis)

    @admin.display(description="cost")
    def cost_amount(self, row: UsageMeterEvent) -> Amount | None:
        cost: CostEvent | None = row.known_cost  # type: ignore[attr-defined]  # set by `prepare`
        return Amount(int(cost.amount_picos), cost.currency) if cost else None

    @admin.display(description="meter")
    def meter_version(self, row: UsageMeterEvent) -> Code:
        return Code(row.meter_id)

    @admin.display(description="period")
    def period_link(self, row: UsageMeterEvent) -> Link:
        return Link(row.period_id, self.sibling(EntitlementPeriod).url_of_key(row.period_id))

    @admin.display(description="recorded")
    def recorded(self, row: UsageMeterEvent) -> Lines:
        return Lines(row.recorded_at, f"by {row.source}")

    def prepare(self, rows: Sequence[UsageMeterEvent]) -> None:
        costs = CostEvent.objects.using(self.alias).filter(usage_id__in=[row.reservation_id for row in rows])
        known = {cost.usage_id: cost for cost in costs}
        for row in rows:
            row.known_cost = known.get(row.reservation_id)  # type: ignore[attr-defined]  # read by `cost_amount`

    def find(self, request: HttpRequest, key: str) -> UsageMeterEvent:
        row: UsageMeterEvent = super().find(request, key)
        self.prepare([row])
        return row

    def title_of(self, row: UsageMeterEvent) -> str:
        return f"Usage of reservation {row.reservation_id}"

    def tables(self, row: UsageMeterEvent) -> list[Table]:
        pages = self.sibling(RuntimeReservation)
        reservations = pages.get_queryset(HttpRequest()).filter(reservation_id=row.reservation_id)
        tables = [pages.table(list(reservations), title="Reservation")]
        cost: CostEvent | None = row.known_cost  # type: ignore[attr-defined]  # set by `find`
        if cost:
            books = self.sibling(StoredPriceBook)
            cells = (
                Link(Code(cost.price_book_ref), books.url_of_key(cost.price_book_ref)),
                cost.quantity,
                Amount(int(cost.unit_cost_picos), cost.currency),
                Amount(int(cost.amount_picos), cost.currency),
            )
            tables.append(Table("Cost", ("Price book", "Units", "Per unit", "Amount"), (cells,)))
        return tables
