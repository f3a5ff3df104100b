"""`CommercialPlan@1`, and what an operator writes: plans with hard limits and meters, and subscriptions (C1, C10).

A meter says which tool and dimension it counts, in which unit, and from which entitlement it takes. An entitlement is a
hard limit per period of the subscription. A plan never changes; a new version is another plan.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from billing.pricing.contracts import PriceBookName
from outbox.contracts.canonical import MAX_INTEGER
from outbox.contracts.contract import ContentAddressed, Contract, Count, Identifier
from upstream.admission.contracts import ChargeDimensionKey, Currency

MAX_METERS = 1_000
"""Meters, and entitlements, of one plan: it is read whole."""

PlanName = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Tool = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[a-z][a-z0-9_-]*$")]
"""What kind of tool is used, such as `connector` or `storage`."""
Dimension = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[a-z][a-z0-9._-]*$")]
"""What of the tool is counted, such as `financial.ingest` or `attachment.upload`."""
Basis = Literal["events", "bytes"]
"""The unit of a quantity."""
PlanVersion = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
LocalDate = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
"""A day in the subscription's zone; it begins at its first instant there."""


class PlanEntitlement(Contract):
    """How much of something a subscription may use in each of its periods."""

    name: PlanName
    quantity_basis: Basis
    hard_limit: Count


class MeterCost(Contract):
    """By what a cost fact is written beside each usage: the price book in effect, and the dimension in it."""

    price_book: PriceBookName
    currency: Currency
    charge_dimension_key: ChargeDimensionKey


class PlanMeter(Contract):
    """What is counted, in which unit, and from which entitlement it is taken."""

    tool: Tool
    dimension: Dimension
    quantity_basis: Basis
    entitlement: PlanName
    cost: MeterCost | None = None

    @property
    def key(self) -> tuple[str, str]:
        """By what meters are unique and sorted."""
        return self.tool, self.dimension


def _unique_entitlements(entitlements: tuple[PlanEntitlement, ...]) -> tuple[PlanEntitlement, ...]:
    if len({entitlement.name for entitlement in entitlements}) != len(entitlements):
        raise ValueError("each entitlement stands once")
    return entitlements


def _unique_meters(meters: tuple[PlanMeter, ...]) -> tuple[PlanMeter, ...]:
    if len({meter.key for meter in meters}) != len(meters):
        raise ValueError("each tool and dimension is counted by one meter")
    return meters


def _sorted_entitlements(entitlements: tuple[PlanEntitlement, ...]) -> tuple[PlanEntitlement, ...]:
    if list(entitlements) != sorted(entitlements, key=lambda entitlement: entitlement.name):
        raise ValueError("entitlements are sorted by name")
    return entitlements


def _sorted_meters(meters: tuple[PlanMeter, ...]) -> tuple[PlanMeter, ...]:
    if list(meters) != sorted(meters, key=lambda meter: meter.key):
        raise ValueError("meters are sorted by tool and dimension")
    return meters


Entitlements = Annotated[
    tuple[PlanEntitlement, ...], Field(min_length=1, max_length=MAX_METERS), AfterValidator(_unique_entitlements)
]
Meters = Annotated[tuple[PlanMeter, ...], Field(min_length=1, max_length=MAX_METERS), AfterValidator(_unique_meters)]


class PlanFile(Contract):
    """One plan of a catalogue; the order of entitlements and meters means nothing."""

    name: PlanName
    plan_version: PlanVersion
    entitlements: Entitlements
    meters: Meters


class CommercialPlan(ContentAddressed, own="commercial_plan", version="1"):
    """One version of a plan. Every meter takes from an entitlement of the plan that counts in the same unit."""

    name: PlanName
    plan_version: PlanVersion
    entitlements: Annotated[Entitlements, AfterValidator(_sorted_entitlements)]
    meters: Annotated[Meters, AfterValidator(_sorted_meters)]


class SubscriptionFile(Contract):
    """One subscription to open. It never changes, except that it may be ended once."""

    subscription_id: Identifier
    tenant_kind: Literal["organization", "personal"]
    tenant_id: Identifier
    plan: PlanName
    plan_version: PlanVersion
    zone: Identifier
    """Name of a time zone, such as `Europe/Berlin`; periods begin and end by its calendar."""
    period: Literal["day", "month", "year"]
    starts_on: LocalDate
    ends_on: LocalDate | None = None
    """The first day that does not belong to it."""
