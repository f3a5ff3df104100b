"""`RunAdmissionManifest@1`: on which terms a run was admitted. `AdmissionRefusal@1`: that it never will be."""

from dataclasses import dataclass
from typing import Literal, Self

from outbox.contracts.contract import (
    ContentAddressed,
    ContentReference,
    DecimalString,
    Identifier,
    Sha256,
    Timestamp,
)
from outbox.contracts.envelope import Tenancy
from upstream.admission.contracts.request import Currency, EstimatedQuantities, RunAdmissionRequest

AdmissionRefusalReason = Literal["core_failed", "admission_abandoned"]
"""core_failed: core could not commit the run. admission_abandoned: the caller vanished between hold and run."""


@dataclass(frozen=True, slots=True)
class AdmissionTerms:
    """What billing decides about a run: at which prices, and how much is held (pico-units)."""

    price_book: ContentReference
    currency: str
    hold_amount_picos: int


class RunAdmissionManifest(
    Tenancy, ContentAddressed, own="run_admission_manifest", version="1", excluded=("admitted_at",)
):
    """One admitted run: whose it is, who pays, at which prices, what was estimated and what was held.

    `admitted_at` stands outside the digest, so billing can name the manifest in its own transaction, before core
    commits the run.
    """

    run_admission_manifest: ContentReference
    operation_id: Identifier
    request_sha256: Sha256
    run_id: Identifier
    billing_account_id: Identifier
    billing_reservation_id: Identifier
    price_book: ContentReference
    currency: Currency
    estimated_quantities: EstimatedQuantities
    hold_amount_picos: DecimalString
    requested_at: Timestamp
    admitted_at: Timestamp

    @classmethod
    def of(cls, request: RunAdmissionRequest, *, terms: AdmissionTerms, admitted_at: str) -> Self:
        """The one manifest that this request has under these terms."""
        return cls.issue(
            ref=f"run-admission-manifest:{request.run_id.removeprefix('run:')}",
            tenant_kind=request.tenant_kind,
            tenant_id=request.tenant_id,
            workspace_id=request.workspace_id,
            project_id=request.project_id,
            operation_id=request.operation_id,
            request_sha256=request.request_sha256(),
            run_id=request.run_id,
            billing_account_id=request.billing_account_id,
            billing_reservation_id=request.billing_reservation_id,
            price_book=terms.price_book,
            currency=terms.currency,
            estimated_quantities=request.estimated_quantities,
            hold_amount_picos=str(terms.hold_amount_picos),
            requested_at=request.requested_at,
            admitted_at=admitted_at,
        )


class AdmissionRefusal(ContentAddressed, own="admission_refusal", version="1", excluded=("refused_at",)):
    """Core's promise, stored under the operation's unique key, that this operation's run will never exist.

    Only this releases a hold: no timeout and no "not found" does.
    """

    admission_refusal: ContentReference
    operation_id: Identifier
    request_sha256: Sha256
    reason: AdmissionRefusalReason
    refused_at: Timestamp

    @classmethod
    def of(cls, *, operation_id: str, request_sha256: str, reason: AdmissionRefusalReason, refused_at: str) -> Self:
        """The refusal of one operation's request."""
        return cls.issue(
            ref=f"admission-refusal:{request_sha256}",
            operation_id=operation_id,
            request_sha256=request_sha256,
            reason=reason,
            refused_at=refused_at,
        )
