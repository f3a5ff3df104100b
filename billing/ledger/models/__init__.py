"""Who pays, and the double-entry ledger of what they have, what is held, and what was earned.

Every amount is a whole number of pico-units of the account's currency. Balances are moved by the database itself when
entries are inserted (sql/balances.sql); no login role but the schema's may write them.
"""

from billing.ledger.models.account import AccountKind, BillingAccount, ChargeSource, LedgerAccount, Tenant, picos
from billing.ledger.models.posting import HoldState, LedgerEntry, LedgerHold, LedgerPosting, PostingKind

__all__ = [
    "AccountKind",
    "BillingAccount",
    "ChargeSource",
    "HoldState",
    "LedgerAccount",
    "LedgerEntry",
    "LedgerHold",
    "LedgerPosting",
    "PostingKind",
    "Tenant",
    "picos",
]
