"""What billing's sweep asks of core: make sure that this operation's run will never exist, or say that it does."""

from typing import Annotated, Literal

from pydantic import Field

from outbox.contracts.contract import ContentReference, Contract, Identifier, Sha256
from outbox.contracts.question import Question
from upstream.admission.contracts.request import MAX_BATCH

SWEEP_WORKLOAD = "billing.admission_sweep"


class UnadmittedOperation(Contract):
    """An operation whose hold was never confirmed, and the body it was held for."""

    operation_id: Identifier
    request_sha256: Sha256


class UnadmittedOperations(Contract):
    """One batch; the answers stand in the same order."""

    operations: Annotated[tuple[UnadmittedOperation, ...], Field(min_length=1, max_length=MAX_BATCH)]


class RefusalStored(Contract):
    """The refusal stands under the operation's unique key, now or before: a late commit of the run fails."""

    state: Literal["refused"] = "refused"
    operation_id: Identifier
    admission_refusal: ContentReference


class AlreadyAdmitted(Contract):
    """The run was committed; nothing was refused."""

    state: Literal["admitted"] = "admitted"
    operation_id: Identifier
    run_admission_manifest: ContentReference


class RefusalConflicting(Contract):
    """The operation id stands for another body in core. Nothing was changed; an operator must look."""

    state: Literal["conflicting"] = "conflicting"
    operation_id: Identifier


RefusalAnswer = Annotated[RefusalStored | AlreadyAdmitted | RefusalConflicting, Field(discriminator="state")]


class RefusalAnswers(Contract):
    answers: tuple[RefusalAnswer, ...]


REFUSE_UNADMITTED_OPERATIONS = Question(
    name="refuseUnadmittedOperations",
    audience="core.admission",
    workloads=frozenset({SWEEP_WORKLOAD}),
    expected=UnadmittedOperations,
    answer=RefusalAnswers,
)
