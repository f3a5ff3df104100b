"""`TelemetryCharge@1` and the order to post it: what one organisation used of one thing in one window (T13).

A charge names the whole of what was used, never a difference; billing works out what is still to be moved. Its identity
(kind, cluster, window, organisation, model or resource type) never changes; its generation grows with every change of
the quantities. Windows are half-open: an event at `window_end` belongs to the next one.
"""

import uuid
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints

from outbox.contracts.canonical import MAX_INTEGER, encode_trusted
from outbox.contracts.contract import (
    ContentAddressed,
    ContentReference,
    Contract,
    DecimalString,
    Identifier,
    Text,
    Timestamp,
)
from outbox.contracts.question import Question
from upstream.admission.contracts import ChargeDimensionKey, Currency

MAX_BATCH = 200
"""Charges in one request: with the longest names it stays under the size of a canonical document."""
MAX_DIMENSIONS = 8

EventKind = Literal["llm_billing", "resource_utilization"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00]+$")]
"""Whatever an event may say: an organisation, a model, a type of resource."""
Quantity = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,24}$")]
"""A positive whole number of units in decimal digits, for a sum may exceed JSON numbers. What is zero is left out."""
Generation = Annotated[int, Field(ge=1, le=MAX_INTEGER)]

_NAMESPACE = uuid.UUID("6f7c1d62-3b7e-5c0a-9a58-0a4f2a6f8d31")
"""Fixed for ever: the identity of every charge derives from it."""


class UsedQuantity(Contract):
    """How many units of one charge dimension were used."""

    charge_dimension_key: ChargeDimensionKey
    quantity: Quantity


def _sorted_and_unique(quantities: tuple[UsedQuantity, ...]) -> tuple[UsedQuantity, ...]:
    keys = [quantity.charge_dimension_key for quantity in quantities]
    if keys != sorted(set(keys)):
        raise ValueError("charge dimensions must be sorted and each stand once")
    return quantities


UsedQuantities = Annotated[
    tuple[UsedQuantity, ...], Field(max_length=MAX_DIMENSIONS), AfterValidator(_sorted_and_unique)
]
"""Empty: a correction found that nothing was used after all."""


IDENTITY = ("event_kind", "cluster_id", "window_start", "organization_id", "applies_to")
"""The fields that a charge keeps in all its generations."""


def charge_id(*, event_kind: str, cluster_id: str, window_start: str, organization_id: str, applies_to: str) -> str:
    """The identity of a charge in all its generations. `window_start` is a wire timestamp."""
    identity = [event_kind, cluster_id, window_start, organization_id, applies_to]
    return f"telemetry-charge:{uuid.uuid5(_NAMESPACE, encode_trusted({'identity': identity}).decode())}"


class TelemetryCharge(ContentAddressed, own="telemetry_charge", version="1"):
    """One generation of one charge. Billing derives the identity itself and never believes the ref."""

    event_kind: EventKind
    cluster_id: Identifier
    window_start: Timestamp
    window_end: Timestamp
    organization_id: Name
    applies_to: Name
    """The model, or the type of resource."""
    generation: Generation
    quantities: UsedQuantities

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """The charge of these fields, named after its identity and generation. Raises `ContractViolation`."""
        identity = {name: fields[name] for name in IDENTITY}
        return cls.issue(ref=f"{charge_id(**identity)}/{fields['generation']}", **fields)

    @property
    def charge_id(self) -> str:
        """The same for every generation."""
        return charge_id(**{name: getattr(self, name) for name in IDENTITY})


class TelemetryCharges(Contract):
    """One batch; the answers stand in the same order."""

    charges: Annotated[tuple[TelemetryCharge, ...], Field(min_length=1, max_length=MAX_BATCH)]


ChargeRefusal = Literal["no_account", "charged_from_runs", "no_price_book", "unknown_price", "insufficient_funds"]
REFUSAL_MEANINGS: dict[ChargeRefusal, str] = {
    "no_account": "The organisation has no billing account. Open one that is charged from telemetry.",
    "charged_from_runs": "The organisation is charged from runs, and never from both. Nothing is to be done.",
    "no_price_book": "No price book of the account was in effect when the window began. Import one that was.",
    "unknown_price": "The price book has no price for what was used. Import a version that has it, in effect by then.",
    "insufficient_funds": "The wallet holds less than the charge. Top it up.",
}
"""Refusals leave nothing behind: the same charge may be posted again when the cause is gone."""


class ChargePosted(Contract):
    """This generation is posted, now or before; the account is charged `amount_picos` in all for it."""

    state: Literal["posted"] = "posted"
    charge_id: Identifier
    generation: Generation
    billing_account_id: Identifier
    price_book: ContentReference
    currency: Currency
    amount_picos: DecimalString


class ChargeRefused(Contract):
    """Nothing was moved."""

    state: Literal["refused"] = "refused"
    charge_id: Identifier
    generation: Generation
    reason: ChargeRefusal
    detail: Text | None = None
    """What exactly is missing, such as the charge dimension without a price."""


class ChargeSuperseded(Contract):
    """A later generation is posted already. Nothing was moved."""

    state: Literal["superseded"] = "superseded"
    charge_id: Identifier
    generation: Generation
    latest_generation: Generation


class ChargeConflicting(Contract):
    """This generation stands for other quantities. Nothing was moved; an operator must look."""

    state: Literal["conflicting"] = "conflicting"
    charge_id: Identifier
    generation: Generation
    latest_generation: Generation


ChargeAnswer = Annotated[
    ChargePosted | ChargeRefused | ChargeSuperseded | ChargeConflicting, Field(discriminator="state")
]


class ChargeAnswers(Contract):
    answers: tuple[ChargeAnswer, ...]


CONSUMPTION_WORKLOAD = "metering.consumption"

POST_TELEMETRY_CHARGES = Question(
    name="postTelemetryCharges",
    audience="billing.telemetry_charges",
    workloads=frozenset({CONSUMPTION_WORKLOAD}),
    expected=TelemetryCharges,
    answer=ChargeAnswers,
)
"""Billing answers in one transaction, idempotent by charge and generation; a later generation moves the difference."""
