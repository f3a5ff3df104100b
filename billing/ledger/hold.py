"""Set money aside for a purpose, and give it back."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connections

from billing.ledger.models import AccountKind, PostingKind
from billing.ledger.post import ALIAS, Entry, NewHold, Posting, post


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One hold: whose money, and how much (pico-units)."""

    hold_id: str
    billing_account_id: str
    currency: str
    amount_picos: int


def place_holds(holds: Sequence[Hold]) -> None:
    """Move each amount from wallet to held. The caller holds the accounts' rows. Raises `LedgerError`."""
    post(
        [_posting(hold, PostingKind.HOLD, sign=1) for hold in holds],
        holds=[
            NewHold(
                hold_id=hold.hold_id,
                billing_account_id=hold.billing_account_id,
                currency=hold.currency,
                amount_picos=hold.amount_picos,
                opened_by=f"hold:{hold.hold_id}",
            )
            for hold in holds
        ],
    )


CLOSE = """
UPDATE ledger_holds SET state = 'released', closed_by_id = 'release:' || hold_id, closed_at = now()
 WHERE hold_id = ANY (%s) AND state = 'held'
RETURNING hold_id, billing_account_id, currency, amount_picos
"""


def release_holds(hold_ids: Sequence[str]) -> frozenset[str]:
    """Give the whole amounts back to the wallets; returns the holds that were still held.

    The caller holds the accounts' rows. Raises `LedgerError`.
    """
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(CLOSE, [list(hold_ids)])
        closed = [
            Hold(hold_id=hold, billing_account_id=account, currency=currency, amount_picos=int(picos))
            for hold, account, currency, picos in cursor.fetchall()
        ]
    post([_posting(hold, PostingKind.RELEASE, sign=-1) for hold in closed])
    return frozenset(hold.hold_id for hold in closed)


def _posting(hold: Hold, kind: PostingKind, *, sign: int) -> Posting:
    amount = sign * hold.amount_picos
    return Posting(
        reference=f"{kind.value}:{hold.hold_id}",
        kind=kind,
        billing_account_id=hold.billing_account_id,
        currency=hold.currency,
        entries=(Entry(AccountKind.WALLET, -amount), Entry(AccountKind.HELD, amount, hold.hold_id)),
    )
