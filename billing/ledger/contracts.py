"""What an operator writes to open accounts."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from outbox.contracts.contract import Contract, Identifier, Text
from upstream.admission.contracts import Currency

PositivePicos = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,37}$")]
"""A positive number of pico-units in plain decimal digits."""


class AccountFile(Contract):
    """One account to open. Everything but the label is fixed for ever."""

    billing_account_id: Identifier
    tenant_kind: Literal["organization", "personal"]
    tenant_id: Identifier
    currency: Currency
    charge_source: Literal["runs", "telemetry"]
    price_book_name: Identifier
    label: Text
    top_up_picos: PositivePicos | None = None
    """Paid in once, when the account is opened."""
