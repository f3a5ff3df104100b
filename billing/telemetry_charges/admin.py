"""What telemetry charged, to be read: each charge with its generations and postings."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest

from billing.ledger.models import BillingAccount, LedgerPosting
from billing.pricing.models import StoredPriceBook
from billing.telemetry_charges.models import ChargeGeneration, StoredTelemetryCharge
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
    Table,
)

SHOWN = 50
"""Generations that the page of a charge shows."""


def _of_account(pages: ReadOnlyAdmin, value: str) -> Option | None:
    return Option(value, f"account {value}", Q(billing_account_id=value)) if value else None


class TelemetryChargeAdmin(ReadOnlyAdmin):
    slug = "telemetry-charges"
    label = "Telemetry charges"
    group = "Money"
    position = 76
    about = (
        "What organisations used of one thing in one window, latest window first. Corrections are later generations."
    )
    order = ("-window_start", "-charge_id")
    filters = (Filter("account", "Account", find=_of_account),)
    lookups = ("charge_id",)
    list_display = ("charge_id", "window", "organization_id", "applies_to", "amount", "account")
    headings = {"charge_id": "Charge", "organization_id": "Organisation", "applies_to": "Of what"}
    fieldsets = (
        ("Charge", {"fields": ("event_kind", "organization_id", "applies_to", "amount", "account")}),
        ("Where and when", {"fields": ("cluster_id", "window_start", "window_end", "first_posted_at")}),
    )

    @admin.display(description="window")
    def window(self, row: StoredTelemetryCharge) -> Span:
        return Span(row.window_start, row.window_end)

    @admin.display(description="account")
    def account(self, row: StoredTelemetryCharge) -> Link:
        return Link(Code(row.billing_account_id), self.sibling(BillingAccount).url_of_key(row.billing_account_id))

    @admin.display(description="charged")
    def amount(self, row: StoredTelemetryCharge) -> Amount:
        return Amount(getattr(row, "amount_picos", 0), row.currency)

    def prepare(self, rows: Sequence[StoredTelemetryCharge]) -> None:
        latest = (
            ChargeGeneration.objects.using(self.alias)
            .filter(charge_id__in=[row.charge_id for row in rows])
            .order_by("charge_id", "-generation")
            .distinct("charge_id")
        )
        amounts = dict(latest.values_list("charge_id", "amount_picos"))
        for row in rows:
            row.amount_picos = int(amounts[row.charge_id])  # type: ignore[attr-defined]  # read by `amount`

    def find(self, request: HttpRequest, key: str) -> StoredTelemetryCharge:
        row: StoredTelemetryCharge = super().find(request, key)
        self.prepare([row])
        return row

    def title_of(self, row: StoredTelemetryCharge) -> str:
        return f"Charge of {row.organization_id} for {row.applies_to}"

    def tables(self, row: StoredTelemetryCharge) -> list[Table]:
        generations = self._generations(row)
        postings, books = self.sibling(LedgerPosting), self.sibling(StoredPriceBook)
        cells = tuple(
            (
                one.generation,
                Amount(int(one.amount_picos), row.currency),
                Amount(int(one.delta_picos), row.currency),
                Link(Code(one.posting_id), postings.url_of_key(one.posting_id)) if one.posting_id else None,
                Link(Code(one.price_book_id), books.url_of_key(one.price_book_id)),
                one.posted_at,
                Reference(
                    f"{row.charge_id}/{one.generation}", one.schema_version, one.digest_algorithm_version, one.digest
                ),
            )
            for one in generations
        )
        headings = ("Generation", "Charged in all", "Difference", "Posting", "Price book", "Posted", "Content")
        return [Table("Generations, latest first", headings, cells)]

    def beside_row(self, row: StoredTelemetryCharge, request: HttpRequest) -> dict[str, Any]:
        latest = self._generations(row)[0]
        size = len(latest.candidate.encode())
        return {
            "documents": [
                ("Latest content", f"canonical, {size:,} bytes", Document(latest.candidate), latest.candidate)
            ]
        }

    def _generations(self, row: StoredTelemetryCharge) -> list[ChargeGeneration]:
        rows = ChargeGeneration.objects.using(self.alias).filter(charge_id=row.charge_id)
        return list(rows.order_by("-generation")[:SHOWN])


SECTIONS["billing"].register(StoredTelemetryCharge, TelemetryChargeAdmin)
