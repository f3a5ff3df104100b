"""Ask for quota before anything is touched (C1, C2, C6, C8). The decision is one call of the database."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, NoReturn

from django.db import InterfaceError, OperationalError, connections
from uuid_utils.compat import uuid7

from billing.commercial import metrics
from billing.commercial.errors import (
    CommercialMisconfigured,
    CommercialUnavailable,
    OperationConflict,
    QuotaExceeded,
    Standing,
    UnknownCost,
    WrongHashKey,
    WrongQuantityBasis,
    WrongTransaction,
)
from billing.commercial.markers.mark import owner_with_markers
from billing.commercial.operation import Operation, key_id
from billing.commercial.permit import Permit, PermitState
from billing.pricing.books import find_price_book
from billing.pricing.errors import PricingError
from billing.pricing.quote import Prices, quote
from outbox.contracts.canonical import MAX_INTEGER
from outbox.raw import raw_cursor
from outbox.steps import reach

ALIAS = "billing"

RESERVE = """
SELECT verdict, reservation, held_generation, hard_limit, taken, held, meter, price_book, currency, cost_dimension
  FROM commercial_reserve(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::numeric)
"""
PERMITTED: dict[str, PermitState] = {
    "unmetered": PermitState.UNMETERED,
    "reserved": PermitState.RESERVED,
    "reopened": PermitState.RESERVED,
    "repeated": PermitState.RESERVED,
    "settled": PermitState.SETTLED,
}
MISCONFIGURED: dict[str, type[CommercialMisconfigured]] = {
    "wrong_basis": WrongQuantityBasis,
    "wrong_key": WrongHashKey,
}


MOST_ANSWERS = 3
"""Calls for one decision: if the contract changes between the first and the one with its cost, it is asked again."""


@dataclass(frozen=True, slots=True)
class _Cost:
    meter_id: str
    price_book_ref: str
    unit_cost_picos: int


class _Answer(NamedTuple):
    """The columns of `RESERVE`."""

    verdict: str
    reservation_id: uuid.UUID | None
    generation: int | None
    hard_limit: int | None
    taken: int | None
    held: int | None
    meter_id: str | None
    price_book: str | None
    currency: str | None
    cost_dimension: str | None


def reserve(operation: Operation, *, quantity: int, using: str, at: datetime) -> Permit:
    """Hold `quantity` for the work that is about to begin on `using`, in the period of `at`.

    The same operation asked for again gets the same reservation while it is held, a new generation after a release,
    and a permit that counts nothing after it was counted. Committed when this returns, whatever becomes of the work.

    Raises `QuotaExceeded`, `OperationConflict` (known with another quantity), `CommercialUnavailable`,
    `CommercialMisconfigured`; then nothing is held and nothing may begin.
    """
    if type(quantity) is not int or not 0 <= quantity <= MAX_INTEGER:
        raise ValueError(f"A quantity is a whole number from 0 to {MAX_INTEGER}.")
    if at.tzinfo is None:
        raise ValueError("The time of an operation needs a time zone; pass an aware datetime.")
    owner = owner_with_markers(using)
    if connections[ALIAS].in_atomic_block:
        raise WrongTransaction(f"A transaction is open on {ALIAS!r}: {WrongTransaction.__doc__}")
    try:
        answer = _answer(operation, business=owner.name, quantity=quantity, at=at)
    except (OperationalError, InterfaceError) as error:
        metrics.decided("unavailable")
        raise CommercialUnavailable(CommercialUnavailable.__doc__) from error
    except UnknownCost:
        metrics.decided("unknown_cost")
        raise
    metrics.decided(answer.verdict)
    if answer.verdict not in PERMITTED:
        _refuse(answer, quantity=quantity)
    reach("commercial.reserved")
    return Permit(
        state=PERMITTED[answer.verdict],
        using=using,
        quantity=quantity,
        reservation_id=answer.reservation_id,
        generation=answer.generation or 0,
    )


def _answer(operation: Operation, *, business: str, quantity: int, at: datetime) -> _Answer:
    cost: _Cost | None = None
    for _ in range(MOST_ANSWERS):
        answer = _ask(operation, business=business, quantity=quantity, at=at, cost=cost)
        if answer.verdict != "needs_cost":
            return answer
        cost = _cost(answer, at=at)
    raise OperationalError("The contract kept changing.")


def _ask(operation: Operation, *, business: str, quantity: int, at: datetime, cost: _Cost | None) -> _Answer:
    with raw_cursor(ALIAS) as cursor:
        cursor.execute(
            RESERVE,
            (
                uuid7(),
                operation.fingerprint(business=business),
                key_id(),
                business,
                operation.tenant_ref,
                operation.tool,
                operation.dimension,
                operation.quantity_basis,
                quantity,
                operation.provider_code,
                at,
                cost.meter_id if cost else None,
                cost.price_book_ref if cost else None,
                cost.unit_cost_picos if cost else None,
            ),
        )
        return _Answer(*(cursor.fetchone() or ()))


def _cost(answer: _Answer, *, at: datetime) -> _Cost:
    """What one unit costs by the book in effect. Raises `UnknownCost`."""
    try:
        book = find_price_book(name=str(answer.price_book), currency=str(answer.currency), at=at)
        unit = quote([(str(answer.cost_dimension), 1)], prices=Prices.of(book))
    except PricingError as error:
        raise UnknownCost(f"{answer.meter_id}: {UnknownCost.__doc__}") from error
    return _Cost(str(answer.meter_id), book.reference.ref, unit)


def _refuse(answer: _Answer, *, quantity: int) -> NoReturn:
    if answer.verdict == "exceeded":
        held = answer.held or 0
        raise QuotaExceeded(
            Standing(hard_limit=answer.hard_limit or 0, used=(answer.taken or 0) - held, held=held, requested=quantity)
        )
    if answer.verdict == "conflicting":
        raise OperationConflict(OperationConflict.__doc__)
    wrong = MISCONFIGURED[answer.verdict]
    raise wrong(f"{answer.meter_id}: {wrong.__doc__}" if answer.meter_id else wrong.__doc__)
