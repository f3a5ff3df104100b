"""What the ledger refuses. Database errors are translated by constraint name, once, here."""

from typing import NoReturn

from django.db import DatabaseError


class LedgerError(Exception):
    """The ledger refused. Permanent unless a subclass says otherwise; the transaction rolls back."""


class PostingConflict(LedgerError):
    """This reference already stands for another posting. Permanent: use a new reference for a new movement."""


class InsufficientFunds(LedgerError):
    """The wallet would go below zero. Transient: top the account up and repeat."""


class WrongChargeSource(LedgerError):
    """The account is charged from the other source. Permanent: it is one of the two, never both."""


class UnbalancedPosting(LedgerError):
    """The entries do not sum to zero, or are not those the posting counts. Permanent: correct the entries."""


class UnknownAccount(LedgerError):
    """There is no such billing account, or it has another tenant or currency. Permanent: open it or correct the id."""


class AccountConflict(LedgerError):
    """It is open with other properties, or its tenant has another account for telemetry. Permanent: neither changes."""


_BY_CONSTRAINT: dict[str, type[LedgerError]] = {
    "ledger_account_never_below_zero": InsufficientFunds,
    "ledger_posting_charges_its_source": WrongChargeSource,
    "ledger_hold_charges_its_source": WrongChargeSource,
    "ledger_posting_balanced": UnbalancedPosting,
    "ledger_posting_complete": UnbalancedPosting,
    "ledger_posting_closed": UnbalancedPosting,
    "ledger_hold_equals_entries": UnbalancedPosting,
    "ledger_entry_currency_of_account": UnknownAccount,
}


def translate(error: DatabaseError) -> NoReturn:
    """Raise what the violated constraint means; an error that names none of ours is raised again as it is."""
    name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
    meaning = _BY_CONSTRAINT.get(name or "")
    if meaning is None:
        raise error
    raise meaning(f"{meaning.__doc__} ({name})") from error
