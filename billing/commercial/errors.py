"""What the commercial boundary refuses, and whether repeating can help. No message holds a caller's identity."""

from dataclasses import dataclass


class CommercialError(Exception):
    """The commercial boundary refused. Nothing was touched unless a subclass says otherwise."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How full an entitlement was at the moment of a refusal, in units of its quantity basis."""

    hard_limit: int
    used: int
    held: int
    requested: int

    @property
    def free(self) -> int:
        """What was left."""
        return self.hard_limit - self.used - self.held


class QuotaExceeded(CommercialError):
    """The hard limit leaves less than was asked for. Permanent until quota is given back or the next period begins."""

    def __init__(self, standing: Standing) -> None:
        super().__init__(
            f"{standing.requested} asked for, {standing.free} free of {standing.hard_limit}. {self.__doc__}"
        )
        self.standing = standing


class OperationConflict(CommercialError):
    """This identity already stands for another quantity. Permanent: use a new identity for another operation."""


class InFlight(CommercialError):
    """The same operation is under way in another transaction. Transient: repeat it."""


class ReservationLost(CommercialError):
    """The reservation was refused and given back before the work began. Transient: repeat the operation."""


class NotCommitted(CommercialError):
    """The business database holds no marker of a commit. Permanent for `settle`: release instead, or commit first."""


class OutcomeUnknown(CommercialError):
    """COMMIT was sent, its answer was lost, and nobody can be asked. Transient: repeat; the sweep finds out."""


class TransactionLost(CommercialError):
    """The connection was closed inside the business transaction, so nothing of it was committed. Transient: repeat."""


class CommercialUnavailable(CommercialError):
    """The commercial database gives no answer, so nothing may begin. Transient: repeat later."""


class CommercialMisconfigured(CommercialError):
    """The commercial configuration cannot decide this. Permanent: an operator has to correct it."""


class AmbiguousMeter(CommercialMisconfigured):
    """Another subscription of the tenant counts the same at the same time. Permanent: end that one first."""


class WrongQuantityBasis(CommercialMisconfigured):
    """The meter counts in another unit than the caller. Permanent: subscribe the tenant to another plan."""


class UnknownCost(CommercialMisconfigured):
    """The meter has a cost, and no price book in effect prices it. Permanent: import one that does."""


class WrongHashKey(CommercialMisconfigured):
    """COMMERCIAL_HASH_KEY is not the one that hashed earlier operations. Permanent: set the first one again."""


class NoMarkers(CommercialMisconfigured):
    """This owner's database has no markers. Permanent: set `has_markers` of the owner in config/owners.py."""


class WrongTransaction(CommercialMisconfigured):
    """The call stands in a transaction that it cannot belong to. Permanent: correct the code."""


class Contradiction(CommercialError):
    """Marker and reservation say different things. Permanent: run `manage.py verify` and follow the runbook."""


class PlanInvalid(CommercialError):
    """The file is not a catalogue of plans. Permanent: correct what the message names; see deploy/demo/plans.json."""


class PlanConflict(CommercialError):
    """This name and version already stands for another plan. Permanent: raise the version."""


class SubscriptionInvalid(CommercialError):
    """Plan, zone or days do not exist or fit. Permanent: correct the file; see deploy/demo/subscriptions.json."""


class SubscriptionConflict(CommercialError):
    """It is open with other properties, or ends otherwise. Permanent: open another one; this one never changes."""


class UnknownSubscription(CommercialError):
    """There is no subscription of this id. Permanent: `manage.py commercial show` lists them."""
