"""Admit runs: billing holds the money first, then core commits the run (decisions, "Admission").

1. Core looks for outcomes; what has one is answered from it.
2. Billing commits hold, reservation, fence and first work, or refuses and writes nothing.
3. Core commits outcome, run, manifest, wallet reservation and both events.
4. Billing confirms the hold. If core failed in 3, core stores a refusal, and only then billing releases the hold.

A crash between any two steps leaves a hold that nobody confirmed; billing's sweep finds it and asks core to refuse the
operation. Repeating the operation is always safe: it goes on where the first try stopped.
"""

from collections.abc import Sequence
from datetime import datetime

import structlog
from django.db import DatabaseError

from outbox.steps import reach
from outbox.transport import ask
from upstream.admission.commit_runs import commit_runs
from upstream.admission.contracts import (
    CONFIRM_ADMITTED_HOLDS,
    HOLD_FOR_RUNS,
    MAX_BATCH,
    RELEASE_UNADMITTED_HOLDS,
    AdmittedHold,
    AdmittedHolds,
    Held,
    HoldAnswer,
    HoldForRuns,
    HoldRefused,
    HoldReleased,
    RunAdmissionRequest,
    UnadmittedHold,
    UnadmittedHolds,
    UnadmittedOperation,
)
from upstream.admission.contracts.hold import ADMISSION_WORKLOAD
from upstream.admission.outcomes import (
    AdmissionAnswer,
    Admitted,
    Conflicting,
    Outcome,
    Refused,
    Undecided,
    read_outcomes,
)
from upstream.admission.refuse import refuse_operations

log = structlog.get_logger("admission")

HeldRequest = tuple[RunAdmissionRequest, Held]


def admit_run(request: RunAdmissionRequest, *, at: datetime) -> AdmissionAnswer:
    """Admit one run, idempotent by operation id.

    Raises what billing raises if it cannot be asked: then nothing is held, or the hold waits for a repeat or the sweep.
    """
    return admit_runs([request], at=at)[0]


def admit_runs(requests: Sequence[RunAdmissionRequest], *, at: datetime) -> list[AdmissionAnswer]:
    """Admit up to `MAX_BATCH` runs in few round trips; one answer per request, in order. Each stands for itself."""
    if not 0 < len(requests) <= MAX_BATCH:
        raise ValueError(f"{len(requests)} runs in one call; admit 1 to {MAX_BATCH}.")
    first: dict[str, RunAdmissionRequest] = {}
    for request in requests:
        first.setdefault(request.operation_id, request)
    digests = {operation: request.request_sha256() for operation, request in first.items()}
    answers: dict[str, AdmissionAnswer] = {
        operation: outcome.answer_to(digests[operation]) for operation, outcome in read_outcomes(list(first)).items()
    }
    open_requests = [request for operation, request in first.items() if operation not in answers]
    if open_requests:
        answers |= _admit(open_requests, digests=digests, at=at)
    return [
        answers[request.operation_id]
        if request is first[request.operation_id] or request.request_sha256() == digests[request.operation_id]
        else Conflicting(operation_id=request.operation_id)
        for request in requests
    ]


def _admit(
    requests: Sequence[RunAdmissionRequest], *, digests: dict[str, str], at: datetime
) -> dict[str, AdmissionAnswer]:
    reach("admission.before_hold")
    holds = ask(HOLD_FOR_RUNS, workload=ADMISSION_WORKLOAD, expected=HoldForRuns(requests=tuple(requests))).answers
    reach("admission.held")
    held: list[HeldRequest] = []
    answers: dict[str, AdmissionAnswer] = {}
    for request, hold in zip(requests, holds, strict=True):
        if isinstance(hold, Held):
            held.append((request, hold))
        else:
            answers[request.operation_id] = _without_hold(hold)
    outcomes = _commit(held, digests=digests, at=at)
    reach("admission.decided")
    _tell_billing(held, outcomes)
    return answers | {operation: _answer(operation, outcome, digests) for operation, outcome in outcomes.items()}


def _without_hold(hold: HoldAnswer) -> AdmissionAnswer:
    if isinstance(hold, HoldRefused):
        return Refused(operation_id=hold.operation_id, reason=hold.reason)
    if isinstance(hold, HoldReleased):
        # Billing released it because core had refused, after we looked for an outcome.
        stored = read_outcomes([hold.operation_id]).get(hold.operation_id)
        return stored.answer if stored else Undecided(operation_id=hold.operation_id)
    return Conflicting(operation_id=hold.operation_id)


def _answer(operation: str, outcome: Outcome | Admitted | None, digests: dict[str, str]) -> AdmissionAnswer:
    if outcome is None:
        return Undecided(operation_id=operation)
    return outcome if isinstance(outcome, Admitted) else outcome.answer_to(digests[operation])


def _commit(
    held: Sequence[HeldRequest], *, digests: dict[str, str], at: datetime
) -> dict[str, Outcome | Admitted | None]:
    """Core's part for the whole batch; if it fails, one by one, so that no run costs its neighbours."""
    if not held:
        return {}
    try:
        fresh = commit_runs(held, at=at)
    except Exception as error:
        if len(held) > 1:
            outcomes: dict[str, Outcome | Admitted | None] = {}
            for one in held:
                outcomes |= _commit([one], digests=digests, at=at)
            return outcomes
        log.warning("admission_core_failed", operation_id=held[0][0].operation_id, error_class=type(error).__name__)
        return _give_up(held[0][0], request_sha256=digests[held[0][0].operation_id], at=at)
    missed = [request.operation_id for request, _ in held if request.operation_id not in fresh]
    stored = read_outcomes(missed) if missed else {}
    return {**fresh, **{operation: stored.get(operation) for operation in missed}}


def _give_up(
    request: RunAdmissionRequest, *, request_sha256: str, at: datetime
) -> dict[str, Outcome | Admitted | None]:
    operation = UnadmittedOperation(operation_id=request.operation_id, request_sha256=request_sha256)
    try:
        return dict(refuse_operations([operation], reason="core_failed", at=at))
    except DatabaseError as error:
        log.warning("admission_undecided", operation_id=request.operation_id, error_class=type(error).__name__)
        return {request.operation_id: None}


def _tell_billing(held: Sequence[HeldRequest], outcomes: dict[str, Outcome | Admitted | None]) -> None:
    """Confirm and release. Best effort: what billing does not hear now, its sweep asks for."""
    confirmed, released = [], []
    for request, hold in held:
        outcome = outcomes.get(request.operation_id)
        if isinstance(outcome, Admitted) or (outcome is not None and isinstance(outcome.answer, Admitted)):
            confirmed.append(
                AdmittedHold(operation_id=request.operation_id, run_admission_manifest=hold.run_admission_manifest)
            )
        elif outcome is not None and outcome.admission_refusal is not None:
            released.append(
                UnadmittedHold(
                    operation_id=request.operation_id,
                    request_sha256=outcome.request_sha256,
                    admission_refusal=outcome.admission_refusal,
                )
            )
    try:
        if confirmed:
            ask(CONFIRM_ADMITTED_HOLDS, workload=ADMISSION_WORKLOAD, expected=AdmittedHolds(holds=tuple(confirmed)))
        if released:
            ask(
                RELEASE_UNADMITTED_HOLDS,
                workload=ADMISSION_WORKLOAD,
                expected=UnadmittedHolds(holds=tuple(released)),
            )
    except Exception as error:  # the admission is decided; what billing did not hear is the sweep's work
        log.warning("admission_not_told", operations=len(held), error_class=type(error).__name__)
