"""What others may order of admission: `admit_run`, `admit_runs` in this owner, and billing's refusals by transport."""

from django.utils import timezone

from outbox.transport import Pass
from upstream.admission.admit import admit_run, admit_runs
from upstream.admission.contracts import (
    AlreadyAdmitted,
    RefusalAnswer,
    RefusalAnswers,
    RefusalConflicting,
    RefusalStored,
    UnadmittedOperation,
    UnadmittedOperations,
)
from upstream.admission.outcomes import Admitted, Outcome
from upstream.admission.refuse import refuse_operations

__all__ = ["admit_run", "admit_runs", "answer_refuse_unadmitted_operations"]


def answer_refuse_unadmitted_operations(
    expected: UnadmittedOperations,
    *,
    caller: Pass,  # the door checked it
) -> RefusalAnswers:
    """`refuseUnadmittedOperations`: the caller of these admissions is given up on, unless the run exists."""
    outcomes = refuse_operations(expected.operations, reason="admission_abandoned", at=timezone.now())
    return RefusalAnswers(
        answers=tuple(_answer(operation, outcomes[operation.operation_id]) for operation in expected.operations)
    )


def _answer(operation: UnadmittedOperation, outcome: Outcome) -> RefusalAnswer:
    if outcome.request_sha256 != operation.request_sha256:
        return RefusalConflicting(operation_id=operation.operation_id)
    if isinstance(outcome.answer, Admitted):
        return AlreadyAdmitted(
            operation_id=operation.operation_id, run_admission_manifest=outcome.answer.run_admission_manifest
        )
    if outcome.admission_refusal is None:
        raise LookupError(f"{operation.operation_id} is refused without a refusal; the database admits no such row.")
    return RefusalStored(operation_id=operation.operation_id, admission_refusal=outcome.admission_refusal)
