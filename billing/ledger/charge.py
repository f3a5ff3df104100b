"""Charge what was used: from the wallet to revenue, and back where a correction lowers a charge."""

from collections.abc import Sequence
from dataclasses import dataclass

from billing.ledger.models import AccountKind, PostingKind
from billing.ledger.post import Entry, Posting, post


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One movement of one account charged from telemetry: how much more (or, negative, less) it is charged by."""

    reference: str
    billing_account_id: str
    currency: str
    amount_picos: int


def charge(charges: Sequence[Charge]) -> frozenset[str]:
    """Post each, once per reference; returns the references that are new. The caller holds the accounts' rows.

    Raises `InsufficientFunds` if a wallet would go below zero, and any other `LedgerError`.
    """
    return post(
        [
            Posting(
                reference=one.reference,
                kind=PostingKind.CHARGE,
                billing_account_id=one.billing_account_id,
                currency=one.currency,
                entries=(
                    Entry(AccountKind.WALLET, -one.amount_picos),
                    Entry(AccountKind.REVENUE, one.amount_picos),
                ),
            )
            for one in charges
        ]
    )
