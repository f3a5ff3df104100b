"""Subscriptions, and how full their entitlements are in each period."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from billing.commercial.admin.share import share
from billing.commercial.fullness import fullness
from billing.commercial.models import EntitlementPeriod, StoredPlan, Subscription, UsageMeterEvent
from config.readonly_admin import Code, Filter, Link, Option, ReadOnlyAdmin, Share, State, Table

LATEST = 24
"""Periods that the page of a subscription shows; the rest stands in the list."""


def _of_tenant(pages: ReadOnlyAdmin, value: str) -> Option | None:
    order = ("-tenant_id", "-starts_at", "-subscription_id")
    return Option(value, f"tenant {value}", Q(tenant_id=value), order) if value else None


class SubscriptionAdmin(ReadOnlyAdmin):
    slug = "subscriptions"
    label = "Subscriptions"
    group = "Quota"
    position = 91
    about = "Contracts of tenants. Periods begin and end by the calendar of their zone; a subscription ends once."
    order = ("-opened_at", "-subscription_id")
    filters = (Filter("tenant", "Tenant", find=_of_tenant),)
    lookups = ("subscription_id",)
    list_display = ("subscription_id", "standing", "tenant_link", "plan_link", "period_unit", "zone", "starts_at")
    headings = {"subscription_id": "Subscription", "starts_at": "Starts", "ends_at": "Ends", "opened_at": "Opened"}
    fieldsets = (
        ("Subscription", {"fields": ("standing", "tenant_link", "plan_link", "opened_at")}),
        ("Time", {"fields": ("period_unit", "zone", "starts_at", "ends_at")}),
    )

    @admin.display(description="state")
    def standing(self, row: Subscription) -> State:
        now = timezone.now()
        if row.starts_at > now:
            return State("pending", "begins later")
        if row.ends_at is not None and row.ends_at <= now:
            return State("ended", "ended")
        return State("active", "active")

    @admin.display(description="tenant")
    def tenant_link(self, row: Subscription) -> Link:
        return Link(Code(row.tenant_id), self.list_url(tenant=row.tenant_id))

    @admin.display(description="plan")
    def plan_link(self, row: Subscription) -> Link:
        return Link(Code(row.plan_id), self.sibling(StoredPlan).url_of_key(row.plan_id))

    def title_of(self, row: Subscription) -> str:
        return f"Subscription {row.subscription_id}"

    def tables(self, row: Subscription) -> list[Table]:
        pages = self.sibling(EntitlementPeriod)
        periods = EntitlementPeriod.objects.using(self.alias).filter(subscription_id=row.subscription_id)
        latest = list(periods.select_related("entitlement").order_by("-entitlement_id", "-starts_at")[:LATEST])
        pages.prepare(latest)
        return [pages.table(latest, title="Periods", empty="Nothing was asked for yet.")]

    def beside_row(self, row: Subscription, request: HttpRequest) -> dict[str, Any]:
        pages = self.sibling(EntitlementPeriod)
        return {"more": ("All periods of this subscription", pages.list_url(subscription=row.subscription_id))}


def _of_subscription(pages: ReadOnlyAdmin, value: str) -> Option | None:
    order = ("-entitlement_id", "-starts_at")
    return Option(value, f"subscription {value}", Q(subscription_id=value), order) if value else None


class EntitlementAdmin(ReadOnlyAdmin):
    slug = "entitlements"
    label = "Entitlements"
    group = "Quota"
    position = 92
    about = "How much of each entitlement is used, held and free, period by period, the latest opened first."
    order = ("-period_id",)
    filters = (Filter("subscription", "Subscription", find=_of_subscription),)
    related = ("entitlement",)
    list_display = ("period_id", "entitlement_name", "taken", "tenant_ref", "subscription_link", "starts_at", "ends_at")
    headings = {"period_id": "Period", "starts_at": "From", "ends_at": "Until", "opened_at": "Opened"}
    fieldsets = (
        ("Entitlement", {"fields": ("entitlement_name", "taken", "tenant_ref", "subscription_link")}),
        ("Period", {"fields": ("starts_at", "ends_at", "opened_at")}),
    )

    @admin.display(description="entitlement")
    def entitlement_name(self, row: EntitlementPeriod) -> Code:
        return Code(row.entitlement_id.removeprefix("commercial-plan:"))

    @admin.display(description="used, held, free")
    def taken(self, row: EntitlementPeriod) -> Share:
        full: Share = row.share  # type: ignore[attr-defined]  # set by `prepare`
        return full

    @admin.display(description="tenant")
    def tenant_ref(self, row: EntitlementPeriod) -> Code:
        return Code(row.tenant_id)

    @admin.display(description="subscription")
    def subscription_link(self, row: EntitlementPeriod) -> Link:
        return Link(Code(row.subscription_id), self.sibling(Subscription).url_of_key(row.subscription_id))

    def prepare(self, rows: Sequence[EntitlementPeriod]) -> None:
        full = fullness([row.period_id for row in rows], alias=self.alias)
        for row in rows:
            unit = row.entitlement.quantity_basis
            row.share = share(full[row.period_id], unit=unit)  # type: ignore[attr-defined]  # read by `taken`

    def find(self, request: HttpRequest, key: str) -> EntitlementPeriod:
        row: EntitlementPeriod = super().find(request, key)
        self.prepare([row])
        return row

    def title_of(self, row: EntitlementPeriod) -> str:
        return f"{row.entitlement_id.removeprefix('commercial-plan:')} of {row.tenant_id}"

    def beside_row(self, row: EntitlementPeriod, request: HttpRequest) -> dict[str, Any]:
        usage = self.sibling(UsageMeterEvent)
        return {"more": ("Usage of this period", usage.list_url(period=str(row.period_id)))}
