"""Accounts and price books for tests: plain functions that make consistent states through the project's own code."""

import uuid

from billing.ledger.accounts import open_account
from billing.ledger.models import ChargeSource, LedgerAccount, LedgerHold
from billing.ledger.top_up import top_up
from billing.pricing.books import import_price_book, read_price_book

PICOS = 10**12
PRICE_BOOK = b"""{"name": "standard", "bookVersion": 1, "currency": "USD",
 "effectiveFrom": "2020-01-01T00:00:00.000000Z",
 "prices": [{"chargeDimensionKey": "llm.output_tokens", "microsPerMillionUnits": 600000},
            {"chargeDimensionKey": "llm.input_tokens", "microsPerMillionUnits": 150000}]}"""


def standard_prices() -> str:
    """Import the book `standard`: 0.15 and 0.60 USD per million input and output tokens."""
    book = read_price_book(PRICE_BOOK)
    import_price_book(book)
    return book.reference.ref


def funded_account(  # the properties an account has
    picos: int = 1_000 * PICOS,
    *,
    account: str | None = None,
    tenant: str = "org-1",
    currency: str = "USD",
    charge_source: ChargeSource = ChargeSource.RUNS,
    price_book_name: str = "standard",
) -> str:
    """An open account with this much in its wallet."""
    account = account or f"account-{uuid.uuid4().hex[:12]}"
    open_account(
        billing_account_id=account,
        tenant_kind="organization",
        tenant_id=tenant,
        currency=currency,
        charge_source=charge_source,
        price_book_name=price_book_name,
    )
    if picos:
        top_up(reference=f"{account}-opening", billing_account_id=account, amount_picos=picos)
    return account


def balances(account: str) -> dict[str, int]:
    """Ledger account kind to balance."""
    rows = LedgerAccount.objects.filter(billing_account_id=account).values_list("kind", "balance_picos")
    return {kind: int(balance) for kind, balance in rows}


def open_holds(account: str) -> list[int]:
    """The amounts that are held."""
    rows = LedgerHold.objects.filter(billing_account_id=account, state="held").values_list("amount_picos", flat=True)
    return sorted(int(row) for row in rows)
