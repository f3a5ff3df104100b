"""What admission asks of billing: hold money for runs, confirm holds of admitted runs, release those of refused ones.

Billing answers each in one transaction, idempotent by operation id. A repeat with another body is `conflicting`.
"""

from typing import Annotated, Literal

from pydantic import Field

from outbox.contracts.contract import ContentReference, Contract, DecimalString, Identifier, Sha256
from outbox.contracts.question import Question
from upstream.admission.contracts.request import MAX_BATCH, Currency, RunAdmissionRequest

HoldRefusal = Literal[
    "unknown_account", "charge_source_not_runs", "no_price_book", "unknown_price", "insufficient_funds"
]
REFUSAL_MEANINGS: dict[HoldRefusal, str] = {
    "unknown_account": "This tenant has no such billing account. Open it first, or correct the id.",
    "charge_source_not_runs": "The account is charged from telemetry, never from runs. Use another.",
    "no_price_book": "No price book in the account's currency is in effect. Import one.",
    "unknown_price": "The price book has no price for a charge dimension of the run. Import a version that has it.",
    "insufficient_funds": "The wallet holds less than the estimate costs. Top up, then repeat the operation.",
}
"""Refusals that leave nothing behind: the same operation may be repeated when the cause is gone."""


class HoldForRuns(Contract):
    """One batch; the answers stand in the same order."""

    requests: Annotated[tuple[RunAdmissionRequest, ...], Field(min_length=1, max_length=MAX_BATCH)]


class Held(Contract):
    """The hold, reservation, finalization fence and first work of this operation are committed, now or before."""

    state: Literal["held"] = "held"
    operation_id: Identifier
    billing_reservation_id: Identifier
    price_book: ContentReference
    currency: Currency
    hold_amount_picos: DecimalString
    run_admission_manifest: ContentReference


class HoldRefused(Contract):
    """Nothing was written."""

    state: Literal["refused"] = "refused"
    operation_id: Identifier
    reason: HoldRefusal


class HoldReleased(Contract):
    """There was a hold, and it was released because core refused the operation; it does not come back."""

    state: Literal["released"] = "released"
    operation_id: Identifier
    admission_refusal: ContentReference


class HoldConflicting(Contract):
    """The operation id already stands for another body, or for another request of the same batch."""

    state: Literal["conflicting"] = "conflicting"
    operation_id: Identifier


HoldAnswer = Annotated[Held | HoldRefused | HoldReleased | HoldConflicting, Field(discriminator="state")]


class HoldAnswers(Contract):
    answers: tuple[HoldAnswer, ...]


class AdmittedHold(Contract):
    """Core committed the run with this manifest."""

    operation_id: Identifier
    run_admission_manifest: ContentReference


class AdmittedHolds(Contract):
    holds: Annotated[tuple[AdmittedHold, ...], Field(min_length=1, max_length=MAX_BATCH)]


class UnadmittedHold(Contract):
    """Core stored this refusal under the operation's unique key."""

    operation_id: Identifier
    request_sha256: Sha256
    admission_refusal: ContentReference


class UnadmittedHolds(Contract):
    holds: Annotated[tuple[UnadmittedHold, ...], Field(min_length=1, max_length=MAX_BATCH)]


class Confirmed(Contract):
    """The reservation is confirmed, now or before."""

    state: Literal["confirmed"] = "confirmed"
    operation_id: Identifier


class Released(Contract):
    """The hold is released, now or before."""

    state: Literal["released"] = "released"
    operation_id: Identifier


class SettleNotFound(Contract):
    """Billing holds nothing for this operation."""

    state: Literal["not_found"] = "not_found"
    operation_id: Identifier


class SettleConflicting(Contract):
    """The reservation stands for another manifest or request, or is settled the other way. Nothing was changed."""

    state: Literal["conflicting"] = "conflicting"
    operation_id: Identifier


SettleAnswer = Annotated[Confirmed | Released | SettleNotFound | SettleConflicting, Field(discriminator="state")]


class SettleAnswers(Contract):
    answers: tuple[SettleAnswer, ...]


ADMISSION_WORKLOAD = "core.admission"
_AUDIENCE = "billing.reservations"

HOLD_FOR_RUNS = Question(
    name="holdForRuns",
    audience=_AUDIENCE,
    workloads=frozenset({ADMISSION_WORKLOAD}),
    expected=HoldForRuns,
    answer=HoldAnswers,
)
CONFIRM_ADMITTED_HOLDS = Question(
    name="confirmAdmittedHolds",
    audience=_AUDIENCE,
    workloads=frozenset({ADMISSION_WORKLOAD}),
    expected=AdmittedHolds,
    answer=SettleAnswers,
)
RELEASE_UNADMITTED_HOLDS = Question(
    name="releaseUnadmittedHolds",
    audience=_AUDIENCE,
    workloads=frozenset({ADMISSION_WORKLOAD}),
    expected=UnadmittedHolds,
    answer=SettleAnswers,
)
