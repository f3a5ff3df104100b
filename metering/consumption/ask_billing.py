"""Have billing post what is owed. Billing answers the same to the same question, so asking twice is harmless (T13).

Taking a charge writes first when to ask again, then asks without any lock or transaction, then writes the answer down
if the charge is still the one that was asked about. Whoever dies in between, or whom billing does not answer, has lost
nothing: the charge comes up again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections

from metering.consumption import statements
from metering.consumption.contracts import (
    CONSUMPTION_WORKLOAD,
    MAX_BATCH,
    POST_TELEMETRY_CHARGES,
    ChargeAnswer,
    ChargeConflicting,
    ChargePosted,
    ChargeRefused,
    ChargeSuperseded,
    TelemetryCharge,
    TelemetryCharges,
    UsedQuantity,
)
from metering.consumption.models import ChargeState
from metering.consumption.window import ALIAS
from outbox.contracts.contract import timestamp
from outbox.steps import reach
from outbox.transport import NotBound, ask

DIMENSIONS: Mapping[str, str] = {
    "input_tokens": "llm.input_tokens",
    "cached_input_tokens": "llm.cached_input_tokens",
    "output_tokens": "llm.output_tokens",
    "samples": "resource.samples",
    "samples_above_threshold": "resource.samples_above_threshold",
}
"""Column of a charge to the charge dimension that billing prices."""
UNREACHABLE = (OperationalError, InterfaceError, ConnectionError, TimeoutError, NotBound)
"""What says nothing about a charge: billing cannot be asked at all now."""

log = structlog.get_logger("metering.consumption")


class _Taken(NamedTuple):
    """One charge that is asked about."""

    consumption_charge_id: int
    charge: TelemetryCharge


def ask_billing(*, go_on: Callable[[], bool]) -> dict[ChargeState, int]:
    """Ask about everything that is due, in batches, and write the answers down; how many came to which state.

    Within a batch what was owed first is asked about first, so a wallet that does not last pays in that order.
    Stops between two batches when `go_on` says so, not before the first, and when billing cannot be reached.
    """
    done: Counter[ChargeState] = Counter()
    while taken := _take():
        reach("consumption.charges_taken")
        try:
            answers = _ask(taken)
        except UNREACHABLE as error:
            log.warning("consumption_billing_unreachable", charges=len(taken), error_class=type(error).__name__)
            break
        reach("consumption.charges_answered")
        done.update(_settle(taken, answers))
        reach("consumption.charges_settled")
        if not go_on():
            break
    return dict(done)


def _take() -> list[_Taken]:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statements.TAKE, {"again": settings.CONSUMPTION_ASK_AGAIN_AFTER, "page": MAX_BATCH})
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    taken = [_Taken(row["consumption_charge_id"], charge_of(row)) for row in rows]
    return sorted(taken, key=lambda one: one.consumption_charge_id)


def charge_of(row: Mapping[str, Any]) -> TelemetryCharge:
    """The charge that a row of `consumption_charges` stands for, in its present generation."""
    return TelemetryCharge.of(
        event_kind=row["kind"],
        cluster_id=row["cluster_id"],
        window_start=timestamp(row["window_start"]),
        window_end=timestamp(row["window_end"]),
        organization_id=row["organization_id"],
        applies_to=row["applies_to"],
        generation=row["generation"],
        quantities=tuple(
            UsedQuantity(charge_dimension_key=dimension, quantity=str(int(row[column])))
            for dimension, column in sorted((dimension, column) for column, dimension in DIMENSIONS.items())
            if row[column]
        ),
    )


def _ask(taken: Sequence[_Taken]) -> list[ChargeAnswer | None]:
    """One answer per charge, in order; None for one that billing fails on when it is asked about alone."""
    try:
        asked = TelemetryCharges(charges=tuple(one.charge for one in taken))
        return list(ask(POST_TELEMETRY_CHARGES, workload=CONSUMPTION_WORKLOAD, expected=asked).answers)
    except UNREACHABLE:
        raise
    except Exception:
        if len(taken) > 1:
            return [answer for one in taken for answer in _ask([one])]
        log.exception("consumption_charge_failed", charge_id=taken[0].charge.charge_id)
        return [None]


def _settle(taken: Sequence[_Taken], answers: Sequence[ChargeAnswer | None]) -> Counter[ChargeState]:
    told = [
        {"id": one.consumption_charge_id, "generation": one.charge.generation, **_told(one.charge, answer)}
        for one, answer in zip(taken, answers, strict=True)
        if answer is not None
    ]
    parameters: dict[str, Any] = {
        "again": settings.CONSUMPTION_ASK_AGAIN_AFTER,
        "ids": [row["id"] for row in told],
        "answers": orjson.dumps(told).decode(),
    }
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statements.SETTLE, parameters)
    return Counter(ChargeState(str(row["state"])) for row in told)


def _told(charge: TelemetryCharge, answer: ChargeAnswer) -> dict[str, str | int | None]:
    own: dict[str, str | int | None] = {"charge": charge.charge_id}
    match answer:
        case ChargePosted():
            return own | {
                "state": ChargeState.POSTED.value,
                "posted": charge.generation,
                "sha256": charge.reference.digest,
                "account": answer.billing_account_id,
                "book": answer.price_book.ref,
                "currency": answer.currency,
                "picos": answer.amount_picos,
            }
        case ChargeRefused():
            final = answer.reason == "charged_from_runs"
            state = ChargeState.NOT_CHARGED if final else ChargeState.REFUSED
            return own | {"state": state.value, "refusal": answer.reason, "detail": answer.detail}
        case ChargeSuperseded() | ChargeConflicting():
            log.error("consumption_charge_conflict", charge_id=charge.charge_id, generation=charge.generation,
                      standing_generation=answer.latest_generation)  # fmt: skip
            return own | {"state": ChargeState.CONFLICTING.value, "standing": answer.latest_generation}
