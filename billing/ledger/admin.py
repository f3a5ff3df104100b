"""Accounts and the ledger, to be read: every amount exact, with its currency."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest

from billing.ledger.models import (
    AccountKind,
    BillingAccount,
    LedgerAccount,
    LedgerEntry,
    LedgerHold,
    LedgerPosting,
    PostingKind,
)
from config.readonly_admin import SECTIONS, Amount, Code, Filter, Link, Option, ReadOnlyAdmin, Table, state_of

LATEST = 20
"""Postings that the page of an account shows; the rest stands in the list of postings."""


class AccountAdmin(ReadOnlyAdmin):
    slug = "accounts"
    label = "Accounts"
    group = "Money"
    position = 70
    about = "One wallet of one tenant in one currency. Balances and the latest postings stand on the page of each."
    order = ("billing_account_id",)
    lookups = ("billing_account_id",)
    list_display = (
        "billing_account_id",
        "tenant_ref",
        "currency",
        "charge_source",
        "price_book",
        "label_text",
        "opened_at",
    )
    fieldsets = (
        ("Account", {"fields": ("tenant_ref", "currency", "charge_source", "price_book", "label_text", "opened_at")}),
    )

    @admin.display(description="tenant")
    def tenant_ref(self, row: BillingAccount) -> Code:
        return Code(row.tenant_id)

    @admin.display(description="price book")
    def price_book(self, row: BillingAccount) -> str:
        return row.price_book_name

    @admin.display(description="label")
    def label_text(self, row: BillingAccount) -> str | None:
        return row.label or None

    def title_of(self, row: BillingAccount) -> str:
        return f"Account {row.billing_account_id}"

    def tables(self, row: BillingAccount) -> list[Table]:
        sides = LedgerAccount.objects.using(self.alias).filter(billing_account_id=row.billing_account_id)
        order = {kind: place for place, kind in enumerate(AccountKind)}
        balances = tuple(
            (
                state_of(AccountKind, side.kind).label,
                Amount(int(side.balance_picos), side.currency),
                side.get_kind_display(),
            )
            for side in sorted(sides, key=lambda side: order[AccountKind(side.kind)])
        )
        pages = self.sibling(LedgerPosting)
        postings = LedgerPosting.objects.using(self.alias).filter(billing_account_id=row.billing_account_id)
        latest = list(postings.order_by("-posted_at", "-reference")[:LATEST])
        pages.prepare(latest)
        table = pages.table(latest, title="Latest postings", empty="No money has moved.")
        return [Table("Balances", ("Ledger account", "Balance", "Meaning"), balances), table]

    def beside_row(self, row: BillingAccount, request: HttpRequest) -> dict[str, Any]:
        return {
            "more": (
                "All postings of this account",
                self.sibling(LedgerPosting).list_url(account=row.billing_account_id),
            )
        }


def _of_account(pages: ReadOnlyAdmin, value: str) -> Option | None:
    return Option(value, f"account {value}", Q(billing_account_id=value)) if value else None


class PostingAdmin(ReadOnlyAdmin):
    slug = "postings"
    label = "Postings"
    group = "Money"
    position = 71
    about = "Movements of money, latest first. The entries of each sum to zero."
    order = ("-posted_at", "-reference")
    filters = (Filter("account", "Account", find=_of_account),)
    lookups = ("reference",)
    list_display = ("reference", "kind", "moved", "account", "posted_at")
    headings = {"posted_at": "Posted", "entry_count": "Entries", "content_sha256": "Content SHA-256"}
    fieldsets = (
        ("Posting", {"fields": ("kind", "account", "charge_source", "posted_at", "entry_count", "content_sha256")}),
    )

    @admin.display(description="account")
    def account(self, row: LedgerPosting) -> Link:
        return Link(Code(row.billing_account_id), self.sibling(BillingAccount).url_of_key(row.billing_account_id))

    @admin.display(description="amount")
    def moved(self, row: LedgerPosting) -> list[Amount]:
        totals: dict[str, int] = getattr(row, "moved_picos", {})
        return [Amount(picos, currency) for currency, picos in totals.items()]

    def prepare(self, rows: Sequence[LedgerPosting]) -> None:
        credits = LedgerEntry.objects.using(self.alias).filter(
            posting_id__in=[row.reference for row in rows], amount_picos__gt=0
        )
        moved: dict[str, dict[str, int]] = {row.reference: {} for row in rows}
        for reference, currency, picos in credits.values_list("posting_id", "currency", "amount_picos"):
            totals = moved[reference]
            totals[currency] = totals.get(currency, 0) + int(picos)
        for row in rows:
            row.moved_picos = moved[row.reference]  # type: ignore[attr-defined]  # read by `moved`

    def title_of(self, row: LedgerPosting) -> str:
        return f"{state_of(PostingKind, row.kind).label} {row.reference}"

    def tables(self, row: LedgerPosting) -> list[Table]:
        entries = LedgerEntry.objects.using(self.alias).filter(posting_id=row.reference).order_by("line")
        holds = self.sibling(LedgerHold)
        cells = tuple(
            (
                entry.line,
                Code(entry.ledger_account_id),
                Amount(int(entry.amount_picos), entry.currency),
                Link(Code(entry.hold_id), holds.url_of_key(entry.hold_id)) if entry.hold_id else None,
            )
            for entry in entries
        )
        totals: dict[str, int] = {}
        for entry in entries:
            totals[entry.currency] = totals.get(entry.currency, 0) + int(entry.amount_picos)
        sums = tuple((None, "sum", Amount(total, currency), None) for currency, total in totals.items())
        return [Table("Entries", ("Line", "Ledger account", "Amount", "Hold"), (*cells, *sums))]


class HoldAdmin(ReadOnlyAdmin):
    slug = "holds"
    label = "Holds"
    group = "Money"
    position = 72
    about = "Money set aside for runs, taken whole and given back whole."
    order = ("-hold_id",)
    lookups = ("hold_id",)
    list_display = ("hold_id", "state", "amount", "account", "opened_at", "closed_at")
    fieldsets = (
        ("Hold", {"fields": ("state", "amount", "account", "charge_source")}),
        ("Time", {"fields": ("opened_at", "opened", "closed_at", "closed")}),
    )

    @admin.display(description="amount")
    def amount(self, row: LedgerHold) -> Amount:
        return Amount(int(row.amount_picos), row.currency)

    @admin.display(description="account")
    def account(self, row: LedgerHold) -> Link:
        return Link(Code(row.billing_account_id), self.sibling(BillingAccount).url_of_key(row.billing_account_id))

    @admin.display(description="opened by")
    def opened(self, row: LedgerHold) -> Link:
        return Link(Code(row.opened_by_id), self.sibling(LedgerPosting).url_of_key(row.opened_by_id))

    @admin.display(description="closed by")
    def closed(self, row: LedgerHold) -> Link | None:
        if row.closed_by_id is None:
            return None
        return Link(Code(row.closed_by_id), self.sibling(LedgerPosting).url_of_key(row.closed_by_id))

    def title_of(self, row: LedgerHold) -> str:
        return f"Hold {row.hold_id}"


PAGES: Sequence[tuple[Any, type[ReadOnlyAdmin]]] = (
    (BillingAccount, AccountAdmin),
    (LedgerPosting, PostingAdmin),
    (LedgerHold, HoldAdmin),
)
for model, pages in PAGES:
    SECTIONS["billing"].register(model, pages)
