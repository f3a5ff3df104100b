"""The order to admit one run, and the identities that both owners derive from it."""

import uuid
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from outbox.contracts.canonical import MAX_INTEGER, encode_trusted, sha256_hex
from outbox.contracts.contract import Contract, Identifier, Timestamp
from outbox.contracts.envelope import Tenancy

MAX_BATCH = 500
"""Runs in one request between core and billing: one statement then stays under a few megabytes."""
MAX_DIMENSIONS = 40
"""Charge dimensions of one run."""

Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
"""ISO 4217 letters. Amounts are pico-units of it."""
ChargeDimensionKey = Annotated[
    str, StringConstraints(min_length=1, max_length=80, pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$")
]
"""What is metered and priced, such as `llm.input_tokens`."""

_NAMESPACE = uuid.UUID("5b0f6a8e-0c51-5f0e-9d0b-1f6f3a1c7a52")
"""Fixed for ever: the identities of every admitted run derive from it."""


class EstimatedQuantity(Contract):
    """How many units of one charge dimension the run is expected to use at most."""

    charge_dimension_key: ChargeDimensionKey
    quantity: Annotated[int, Field(ge=0, le=MAX_INTEGER)]


def _sorted_and_unique(quantities: tuple[EstimatedQuantity, ...]) -> tuple[EstimatedQuantity, ...]:
    keys = [quantity.charge_dimension_key for quantity in quantities]
    if keys != sorted(set(keys)):
        raise ValueError("charge dimensions must be sorted and each stand once")
    return quantities


EstimatedQuantities = Annotated[
    tuple[EstimatedQuantity, ...],
    Field(min_length=1, max_length=MAX_DIMENSIONS),
    AfterValidator(_sorted_and_unique),
]


class RunAdmissionRequest(Tenancy):
    """Admit one run. `operation_id` is the caller's idempotency key and stands for exactly one body, for ever."""

    operation_id: Identifier
    correlation_id: Identifier
    billing_account_id: Identifier
    requested_at: Timestamp
    estimated_quantities: EstimatedQuantities

    def request_sha256(self) -> str:
        """What must be equal for a repeat to be the same request; the correlation of a retry may differ."""
        body = self.wire()
        del body["correlationId"]
        return sha256_hex(encode_trusted(body))

    @property
    def run_id(self) -> str:
        return _identity("run", self.operation_id)

    @property
    def billing_reservation_id(self) -> str:
        return _identity("reservation", self.operation_id)


@lru_cache(maxsize=4 * MAX_BATCH)
def _identity(kind: str, operation_id: str) -> str:
    return f"{kind}:{uuid.uuid5(_NAMESPACE, f'{kind}/{operation_id}')}"
