"""Resolve holds that nobody confirmed: ask core to refuse their operations, and do what core answers.

A hold is unconfirmed when the process that admitted the run died, or could not reach billing, between two steps. How
long ago that was decides only when the sweep asks, never what happens: core answers `refused` after it stored the
refusal under the operation's unique key, or `admitted`. A hold whose admission is merely slow is asked for too; then
the run's late commit fails and its caller is told so. Running the sweep twice at once is harmless.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import connections

from billing.finalization.settle_hold import confirm_holds, release_holds_of
from billing.ledger.post import ALIAS
from outbox.steps import reach
from outbox.transport import ask
from upstream.admission.contracts import (
    REFUSE_UNADMITTED_OPERATIONS,
    AdmittedHold,
    AlreadyAdmitted,
    Confirmed,
    RefusalAnswer,
    RefusalStored,
    Released,
    SettleAnswer,
    UnadmittedHold,
    UnadmittedOperation,
    UnadmittedOperations,
)
from upstream.admission.contracts.refuse import SWEEP_WORKLOAD

PAGE = 200
"""Operations asked about at once."""

log = structlog.get_logger("billing.sweep")

UNCONFIRMED = """
SELECT reserved_at, billing_reservation_id, operation_id, request_sha256 FROM billing_reservations
 WHERE state = 'open' AND confirmed_at IS NULL AND reserved_at <= now() - make_interval(secs => %s)
   AND (reserved_at, billing_reservation_id) > (%s, %s)
 ORDER BY reserved_at, billing_reservation_id LIMIT %s
"""
BEGINNING = datetime.fromisoformat("0001-01-02T00:00:00Z")


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did. `conflicting` needs an operator: core knows the operation under another body."""

    confirmed: int
    released: int
    conflicting: int


def sweep_admissions(*, unconfirmed_for: timedelta) -> Swept:
    """Ask about every hold that is unconfirmed for longer than this. Raises what the transport or core raises."""
    done: Counter[str] = Counter()
    for page in _pages(unconfirmed_for):
        for answer in _resolve(page):
            kind = "confirmed" if isinstance(answer, Confirmed) else "released" if isinstance(answer, Released) else ""
            done[kind or "conflicting"] += 1
            if not kind:
                log.error("admission_sweep_conflict", operation_id=answer.operation_id)
    return Swept(done["confirmed"], done["released"], done["conflicting"])


def _pages(unconfirmed_for: timedelta) -> Iterator[tuple[UnadmittedOperation, ...]]:
    """Every page once, also behind operations that cannot be resolved."""
    after: tuple[datetime, str] = (BEGINNING, "")
    while True:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(UNCONFIRMED, [unconfirmed_for.total_seconds(), *after, PAGE])
            rows = cursor.fetchall()
        if not rows:
            return
        after = (rows[-1][0], rows[-1][1])
        yield tuple(UnadmittedOperation(operation_id=row[2], request_sha256=row[3]) for row in rows)


def _resolve(operations: Sequence[UnadmittedOperation]) -> list[SettleAnswer | RefusalAnswer]:
    answers = ask(
        REFUSE_UNADMITTED_OPERATIONS,
        workload=SWEEP_WORKLOAD,
        expected=UnadmittedOperations(operations=tuple(operations)),
    ).answers
    reach("admission.sweep_asked")
    refused, admitted, done = [], [], list[SettleAnswer | RefusalAnswer]()
    for operation, answer in zip(operations, answers, strict=True):
        if isinstance(answer, RefusalStored):
            refused.append(
                UnadmittedHold(
                    operation_id=operation.operation_id,
                    request_sha256=operation.request_sha256,
                    admission_refusal=answer.admission_refusal,
                )
            )
        elif isinstance(answer, AlreadyAdmitted):
            admitted.append(
                AdmittedHold(operation_id=operation.operation_id, run_admission_manifest=answer.run_admission_manifest)
            )
        else:
            done.append(answer)
    if admitted:
        done += confirm_holds(admitted)
    if refused:
        done += release_holds_of(refused)
    return done
