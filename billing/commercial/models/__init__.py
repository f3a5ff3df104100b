"""The commercial model: what tenants may use, what is set aside for work under way, and what was used.

Nothing here holds a file name, a claim or event number, or content: operations are keyed hashes (C7).
"""

from billing.commercial.models.plan import Entitlement, Meter, QuantityBasis, StoredPlan
from billing.commercial.models.reservation import (
    TRANSITIONS,
    EndedBy,
    IdentityKey,
    ReservationState,
    RuntimeReservation,
)
from billing.commercial.models.subscription import EntitlementPeriod, PeriodUnit, Subscription
from billing.commercial.models.usage import CostEvent, SweepFinding, UsageMeterEvent

__all__ = [
    "TRANSITIONS",
    "CostEvent",
    "EndedBy",
    "Entitlement",
    "EntitlementPeriod",
    "IdentityKey",
    "Meter",
    "PeriodUnit",
    "QuantityBasis",
    "ReservationState",
    "RuntimeReservation",
    "StoredPlan",
    "Subscription",
    "SweepFinding",
    "UsageMeterEvent",
]
