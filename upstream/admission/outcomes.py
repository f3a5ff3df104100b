"""How an operation can end, and how it did: one read by operation id."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connections

from outbox.contracts.contract import ContentReference
from upstream.admission.contracts import REFUSAL_MEANINGS, AdmissionRefusalReason, HoldRefusal

ALIAS = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The run exists, now or before; a repeat of the operation gets the same answer."""

    operation_id: str
    run_id: str
    billing_reservation_id: str
    run_admission_manifest: ContentReference
    run_created_event_id: uuid.UUID
    wallet_reserved_event_id: uuid.UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """There is no run. If `permanent`, the operation id is spent: ask again under a new one."""

    operation_id: str
    reason: HoldRefusal | AdmissionRefusalReason

    @property
    def permanent(self) -> bool:
        return self.reason not in REFUSAL_MEANINGS

    @property
    def advice(self) -> str:
        """What the caller can do."""
        if self.reason == "core_failed" or self.reason == "admission_abandoned":  # noqa: PLR1714  # narrows the type
            return "The operation was given up and its hold released. Ask again with a new operation id."
        return REFUSAL_MEANINGS[self.reason]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicting:
    """This operation id stands for another body, possibly still in flight. Use a new operation id for a new request."""

    operation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """Core could neither commit the run nor store a refusal. Repeat the same operation; otherwise the sweep decides."""

    operation_id: str


AdmissionAnswer = Admitted | Refused | Conflicting | Undecided


@dataclass(frozen=True, slots=True)
class Outcome:
    """One stored outcome: the body it stands for, the answer, and the refusal's four-tuple if it is one."""

    request_sha256: str
    answer: Admitted | Refused
    admission_refusal: ContentReference | None

    def answer_to(self, request_sha256: str) -> Admitted | Refused | Conflicting:
        """The stored answer to the same body; `Conflicting` to any other."""
        if self.request_sha256 != request_sha256:
            return Conflicting(operation_id=self.answer.operation_id)
        return self.answer


OUTCOMES = """
SELECT o.operation_id, o.request_sha256, o.state, r.run_id, r.billing_reservation_id, r.run_created_event_id,
       w.wallet_reserved_event_id, f.reason,
       coalesce(m.run_admission_manifest_ref, f.admission_refusal_ref), coalesce(m.schema_version, f.schema_version),
       coalesce(m.digest_algorithm_version, f.digest_algorithm_version), coalesce(m.digest, f.digest)
  FROM admission_outcomes o
  LEFT JOIN runs r ON r.run_id = o.run_id
  LEFT JOIN run_admission_manifests m ON m.run_admission_manifest_ref = r.run_admission_manifest_id
  LEFT JOIN wallet_reservations w ON w.billing_reservation_id = r.billing_reservation_id
  LEFT JOIN admission_refusals f ON f.admission_refusal_ref = o.admission_refusal_id
 WHERE o.operation_id = ANY (%s)
"""


def read_outcomes(operation_ids: Sequence[str]) -> dict[str, Outcome]:
    """The stored outcomes of these operations; an operation without one is absent."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(OUTCOMES, [list(operation_ids)])
        rows = cursor.fetchall()
    found: dict[str, Outcome] = {}
    for (
        operation,
        request,
        state,
        run,
        reservation,
        run_event,
        wallet_event,
        reason,
        ref,
        version,
        algorithm,
        digest,
    ) in rows:
        reference = ContentReference(ref=ref, schema_version=version, digest_algorithm_version=algorithm, digest=digest)
        if state == "admitted":
            admitted = Admitted(
                operation_id=operation,
                run_id=run,
                billing_reservation_id=reservation,
                run_admission_manifest=reference,
                run_created_event_id=run_event,
                wallet_reserved_event_id=wallet_event,
            )
            found[operation] = Outcome(request, admitted, None)
        else:
            found[operation] = Outcome(request, Refused(operation_id=operation, reason=reason), reference)
    return found
