"""The registry of receipt contracts: how a dispatcher reads what a consumer answered (O20, O21).

Every receipt is content-addressed and names destination, consumer, event and envelope digest under the same names, so
the dispatcher can compare them with the frozen member whatever else the receipt says.
"""

from collections.abc import Callable
from typing import TypeVar

from outbox.contracts.contract import ContentAddressed

COMMON_FIELDS = frozenset(
    {
        "destination",
        "consumer_name",
        "event_id",
        "event_envelope_digest_algorithm_version",
        "event_envelope_sha256",
    }
)


class UnknownReceipt(LookupError):
    """No contract is registered for this receipt type and schema version in this process."""


R = TypeVar("R", bound=type[ContentAddressed])
_RECEIPTS: dict[tuple[str, str], type[ContentAddressed]] = {}


def receipt_contract(receipt_type: str, schema_version: str) -> Callable[[R], R]:
    """Class decorator: the contract of one receipt type and schema version."""

    def register(contract: R) -> R:
        if missing := COMMON_FIELDS - set(contract.__pydantic_fields__):
            raise TypeError(f"{contract.__name__} lacks {sorted(missing)}, which every receipt names.")
        known = _RECEIPTS.setdefault((receipt_type, schema_version), contract)
        if known is not contract:
            raise ValueError(f"{receipt_type}@{schema_version} already has the contract {known.__name__}.")
        return contract

    return register


def receipt_of(receipt_type: str, schema_version: str) -> type[ContentAddressed]:
    """The contract of a receipt. Raises `UnknownReceipt`."""
    try:
        return _RECEIPTS[receipt_type, schema_version]
    except KeyError:
        raise UnknownReceipt(f"No contract is registered for {receipt_type}@{schema_version}.") from None
