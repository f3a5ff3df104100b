"""The one module of billing that other owners' business code imports: quota before work, usage when it committed (C3).

Ask before anything is touched, do the work in the transaction that was asked for, and let how it ends decide:

    with business_transaction(using="attachments") as work:
        work.reserve(operation, quantity=len(content), at=now)
        …

`docs/commercial-hooks.md` tells the whole of it, with an example that runs. Everything raised is a `CommercialError`.
"""

from billing.commercial.business_transaction import BusinessTransaction, business_transaction
from billing.commercial.ending import Ended, release, settle
from billing.commercial.errors import (
    AmbiguousMeter,
    CommercialError,
    CommercialMisconfigured,
    CommercialUnavailable,
    Contradiction,
    InFlight,
    NoMarkers,
    NotCommitted,
    OperationConflict,
    OutcomeUnknown,
    QuotaExceeded,
    ReservationLost,
    Standing,
    TransactionLost,
    UnknownCost,
    WrongHashKey,
    WrongQuantityBasis,
    WrongTransaction,
)
from billing.commercial.markers.mark import Decision, MarkerKey, decide, mark
from billing.commercial.operation import Operation, keyed_hash
from billing.commercial.permit import Permit, PermitState
from billing.commercial.reserve import reserve

__all__ = [
    "AmbiguousMeter",
    "BusinessTransaction",
    "CommercialError",
    "CommercialMisconfigured",
    "CommercialUnavailable",
    "Contradiction",
    "Decision",
    "Ended",
    "InFlight",
    "MarkerKey",
    "NoMarkers",
    "NotCommitted",
    "Operation",
    "OperationConflict",
    "OutcomeUnknown",
    "Permit",
    "PermitState",
    "QuotaExceeded",
    "ReservationLost",
    "Standing",
    "TransactionLost",
    "UnknownCost",
    "WrongHashKey",
    "WrongQuantityBasis",
    "WrongTransaction",
    "business_transaction",
    "decide",
    "keyed_hash",
    "mark",
    "release",
    "reserve",
    "settle",
]
