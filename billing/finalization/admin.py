"""Reservations, and the fences and work through which runs are finalized, to be read."""

from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest

from billing.finalization.models import (
    BillingFinalizationFence,
    BillingReservation,
    ReservationState,
    StoredFinalizationWork,
)
from billing.ledger.models import BillingAccount, LedgerHold
from billing.pricing.models import StoredPriceBook
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
    State,
    Table,
)


def _queues(pages: ReadOnlyAdmin) -> list[Option]:
    unconfirmed = Q(state=ReservationState.OPEN, confirmed_at=None)
    return [Option("unconfirmed", "not confirmed by core", unconfirmed, ("reserved_at", "billing_reservation_id"))]


class ReservationAdmin(ReadOnlyAdmin):
    slug = "reservations"
    label = "Reservations"
    group = "Money"
    position = 73
    about = "What billing reserved for each operation, latest first. Its hold carries the same id."
    order = ("-reserved_at", "-billing_reservation_id")
    filters = (Filter("queue", "Show", _queues),)
    lookups = ("billing_reservation_id",)
    list_display = (
        "billing_reservation_id",
        "standing",
        "operation",
        "account",
        "reserved_at",
        "confirmed_at",
        "released_at",
    )
    fieldsets = (
        ("Reservation", {"fields": ("standing", "reserved_at", "confirmed_at", "released_at", "request_sha256")}),
        ("What for", {"fields": ("operation_id", "run_id", "account", "price_book")}),
        ("Admission manifest", {"fields": ("manifest",)}),
        ("Admission refusal", {"fields": ("refusal",)}),
    )

    @admin.display(description="state")
    def standing(self, row: BillingReservation) -> State:
        if row.state == ReservationState.RELEASED:
            return State("released", "released", "Core refused the operation and the hold was given back.")
        if row.confirmed_at is None:
            return State("pending", "not confirmed", "The hold stands; billing has not learnt that core has the run.")
        return State("confirmed", "confirmed", "The hold stands, and core has the run.")

    @admin.display(description="operation")
    def operation(self, row: BillingReservation) -> Code:
        return Code(row.operation_id)

    @admin.display(description="account")
    def account(self, row: BillingReservation) -> Link:
        return Link(Code(row.billing_account_id), self.sibling(BillingAccount).url_of_key(row.billing_account_id))

    @admin.display(description="price book")
    def price_book(self, row: BillingReservation) -> Link:
        return Link(Code(row.price_book_id), self.sibling(StoredPriceBook).url_of_key(row.price_book_id))

    @admin.display(description="four-tuple")
    def manifest(self, row: BillingReservation) -> Reference:
        return Reference(
            row.run_admission_manifest_ref,
            row.run_admission_manifest_schema_version,
            row.run_admission_manifest_digest_algorithm_version,
            row.run_admission_manifest_digest,
        )

    @admin.display(description="four-tuple")
    def refusal(self, row: BillingReservation) -> Reference | None:
        if row.admission_refusal_ref is None:
            return None
        return Reference(
            row.admission_refusal_ref,
            row.admission_refusal_schema_version or "",
            row.admission_refusal_digest_algorithm_version or "",
            row.admission_refusal_digest or "",
        )

    def title_of(self, row: BillingReservation) -> str:
        return f"Reservation {row.billing_reservation_id}"

    def tables(self, row: BillingReservation) -> list[Table]:
        holds = LedgerHold.objects.using(self.alias).filter(hold_id=row.billing_reservation_id)
        fences = BillingFinalizationFence.objects.using(self.alias).filter(
            billing_reservation_id=row.billing_reservation_id
        )
        held = tuple(
            (
                Link(Code(hold.hold_id), self.sibling(LedgerHold).url_of(hold)),
                State(hold.state, hold.state),
                Amount(int(hold.amount_picos), hold.currency),
                hold.opened_at,
                hold.closed_at,
            )
            for hold in holds
        )
        pages = self.sibling(BillingFinalizationFence)
        return [
            Table("Hold", ("Hold", "State", "Amount", "Opened", "Closed"), held),
            pages.table(list(fences), title="Fence"),
        ]


class FenceAdmin(ReadOnlyAdmin):
    slug = "fences"
    label = "Finalization fences"
    group = "Money"
    position = 76
    about = "One row per run under whose lock its finalization moves forward."
    order = ("-billing_finalization_fence_id",)
    lookups = ("run_id",)
    list_display = (
        "billing_finalization_fence_id",
        "coordination_state",
        "run",
        "fence_revision",
        "latest_work_generation",
    )
    fieldsets = (
        ("Fence", {"fields": ("coordination_state", "fence_revision", "latest_work_generation", "active")}),
        ("Run", {"fields": ("run_id", "reservation")}),
    )

    @admin.display(description="run")
    def run(self, row: BillingFinalizationFence) -> Code:
        return Code(row.run_id)

    @admin.display(description="active work")
    def active(self, row: BillingFinalizationFence) -> Code | None:
        return Code(row.active_work_id) if row.active_work_id else None

    @admin.display(description="reservation")
    def reservation(self, row: BillingFinalizationFence) -> Link:
        key = row.billing_reservation_id
        return Link(Code(key), self.sibling(BillingReservation).url_of_key(key))

    def title_of(self, row: BillingFinalizationFence) -> str:
        return f"Fence of {row.run_id}"

    def tables(self, row: BillingFinalizationFence) -> list[Table]:
        works = StoredFinalizationWork.objects.using(self.alias).filter(fence_id=row.billing_finalization_fence_id)
        pages = self.sibling(StoredFinalizationWork)
        return [pages.table(list(works.order_by("work_generation")), title="Work, by generation")]


class WorkAdmin(ReadOnlyAdmin):
    slug = "works"
    label = "Finalization work"
    group = "Money"
    position = 77
    about = "What a fence asks for, generation by generation."
    order = ("-billing_finalization_work_ref",)
    deferred = ("candidate",)
    lookups = ("billing_finalization_work_ref",)
    list_display = ("billing_finalization_work_ref", "work_generation", "fence_link", "created_at")
    fieldsets = (
        ("Work", {"fields": ("work_generation", "fence_link", "billing_finalization_operation_id", "created_at")}),
        ("Content", {"fields": ("reference",)}),
    )

    @admin.display(description="fence")
    def fence_link(self, row: StoredFinalizationWork) -> Link:
        return Link(Code(row.fence_id), self.sibling(BillingFinalizationFence).url_of_key(row.fence_id))

    @admin.display(description="four-tuple")
    def reference(self, row: StoredFinalizationWork) -> Reference:
        return Reference(
            row.billing_finalization_work_ref, row.schema_version, row.digest_algorithm_version, row.digest
        )

    def title_of(self, row: StoredFinalizationWork) -> str:
        return f"Finalization work, generation {row.work_generation}"

    def beside_row(self, row: StoredFinalizationWork, request: HttpRequest) -> dict[str, Any]:
        size = len(row.candidate.encode())
        return {"documents": [("Content", f"canonical, {size:,} bytes", Document(row.candidate), row.candidate)]}


SECTIONS["billing"].register(BillingReservation, ReservationAdmin)
SECTIONS["billing"].register(BillingFinalizationFence, FenceAdmin)
SECTIONS["billing"].register(StoredFinalizationWork, WorkAdmin)
