"""Imported plans with their entitlements and meters."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from billing.commercial.models import Entitlement, Meter, StoredPlan
from config.readonly_admin import Code, Document, ReadOnlyAdmin, Reference, Table


class PlanAdmin(ReadOnlyAdmin):
    slug = "plans"
    label = "Plans"
    group = "Quota"
    position = 90
    about = "What subscriptions entitle to, and what is counted. A plan never changes; a new version is another plan."
    order = ("-name", "-plan_version")
    deferred = ("candidate",)
    lookups = ("plan_ref",)
    list_display = ("plan_ref", "name", "plan_version", "imported_at")
    headings = {"plan_ref": "Plan", "plan_version": "Version", "imported_at": "Imported"}
    fieldsets = (
        ("Plan", {"fields": ("name", "plan_version", "imported_at")}),
        ("Content", {"fields": ("reference",)}),
    )

    @admin.display(description="four-tuple")
    def reference(self, row: StoredPlan) -> Reference:
        return Reference(row.plan_ref, row.schema_version, row.digest_algorithm_version, row.digest)

    def title_of(self, row: StoredPlan) -> str:
        return f"Plan {row.name}, version {row.plan_version}"

    def tables(self, row: StoredPlan) -> list[Table]:
        entitlements = Entitlement.objects.using(self.alias).filter(plan_id=row.plan_ref).order_by("name")
        meters = Meter.objects.using(self.alias).filter(plan_id=row.plan_ref).order_by("tool", "dimension")
        limits = tuple((one.name, one.hard_limit, one.quantity_basis) for one in entitlements)
        counted = tuple(
            (
                Code(f"{one.tool}/{one.dimension}"),
                one.quantity_basis,
                one.entitlement_id.removeprefix(f"{row.plan_ref}/"),
                f"{one.cost_price_book}, {one.cost_dimension}, {one.cost_currency}" if one.cost_price_book else None,
            )
            for one in meters
        )
        return [
            Table("Entitlements", ("Name", "Hard limit per period", "Unit"), limits),
            Table("Meters", ("Counts", "Unit", "Takes from", "Cost by"), counted),
        ]

    def beside_row(self, row: StoredPlan, request: HttpRequest) -> dict[str, Any]:
        size = len(row.candidate.encode())
        return {"documents": [("Content", f"canonical, {size:,} bytes", Document(row.candidate), row.candidate)]}
