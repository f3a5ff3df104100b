"""`BillingFinalizationWork@1`: that a run's charges have to be finalized. One generation replaces the one before it."""

import uuid
from typing import Annotated, Literal, Self

from pydantic import Field

from outbox.contracts.canonical import MAX_INTEGER
from outbox.contracts.contract import ContentAddressed, ContentReference, Contract, Identifier, Timestamp
from outbox.contracts.envelope import Tenancy
from upstream.admission.contracts import RunAdmissionManifest

Generation = Annotated[int, Field(ge=1, le=MAX_INTEGER)]

_NAMESPACE = uuid.UUID("c2f8a1c4-6a38-5a34-8f5d-7d2b9c4e6011")
"""Fixed for ever: fence and work identities derive from it."""


class AdmissionTrigger(Contract):
    """The run was admitted. Such work waits: without the closure of the run it may read and decide nothing."""

    kind: Literal["admission"] = "admission"


class BillingFinalizationWork(
    Tenancy, ContentAddressed, own="billing_finalization_work", version="1", excluded=("created_at",)
):
    """One generation of finalization work under one fence. The first is committed together with the hold."""

    billing_reservation_id: Identifier
    billing_account_id: Identifier
    run_id: Identifier
    run_admission_manifest: ContentReference
    billing_finalization_fence_id: Identifier
    finalization_fence_revision: Generation
    work_generation: Generation
    billing_finalization_operation_id: Identifier
    trigger: AdmissionTrigger
    created_at: Timestamp

    @classmethod
    def first(cls, manifest: RunAdmissionManifest, *, created_at: str) -> Self:
        """The first generation, which admission leaves behind."""
        fence = fence_id(manifest.billing_reservation_id)
        operation = uuid.uuid5(_NAMESPACE, f"work/{fence}/1")
        return cls.issue(
            ref=f"billing-finalization-work:{operation}",
            tenant_kind=manifest.tenant_kind,
            tenant_id=manifest.tenant_id,
            workspace_id=manifest.workspace_id,
            project_id=manifest.project_id,
            billing_reservation_id=manifest.billing_reservation_id,
            billing_account_id=manifest.billing_account_id,
            run_id=manifest.run_id,
            run_admission_manifest=manifest.run_admission_manifest,
            billing_finalization_fence_id=fence,
            finalization_fence_revision=1,
            work_generation=1,
            billing_finalization_operation_id=f"billing-finalization:{operation}",
            trigger=AdmissionTrigger(),
            created_at=created_at,
        )


def fence_id(billing_reservation_id: str) -> str:
    """The finalization fence of a reservation."""
    return f"finalization-fence:{uuid.uuid5(_NAMESPACE, f'fence/{billing_reservation_id}')}"
