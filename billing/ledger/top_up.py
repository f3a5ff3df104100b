"""Money paid in: from funding to the wallet."""

from billing.ledger.accounts import lock_accounts
from billing.ledger.errors import UnknownAccount
from billing.ledger.models import AccountKind, PostingKind
from billing.ledger.post import Entry, Posting, post, translated_transaction


def top_up(*, reference: str, billing_account_id: str, amount_picos: int) -> bool:
    """Credit the wallet once per reference. False if this was posted before. Raises `LedgerError`."""
    if amount_picos <= 0:
        raise ValueError("A top-up is a positive number of pico-units.")
    with translated_transaction():
        account = lock_accounts([billing_account_id]).get(billing_account_id)
        if account is None:
            raise UnknownAccount(f"{billing_account_id}: {UnknownAccount.__doc__}")
        posting = Posting(
            reference=f"top-up:{reference}",
            kind=PostingKind.TOP_UP,
            billing_account_id=billing_account_id,
            currency=account.currency,
            entries=(Entry(AccountKind.FUNDING, -amount_picos), Entry(AccountKind.WALLET, amount_picos)),
        )
        return bool(post([posting]))
