"""One fixed example of each contract of admission."""

from outbox.contracts.contract import ContentReference, Contract
from outbox.contracts.examples import OCCURRED_AT, reference
from upstream.admission.contracts.events import RunCreated, WalletReserved
from upstream.admission.contracts.hold import (
    AdmittedHold,
    AdmittedHolds,
    Confirmed,
    Held,
    HoldAnswers,
    HoldConflicting,
    HoldForRuns,
    HoldRefused,
    HoldReleased,
    Released,
    SettleAnswers,
    SettleConflicting,
    SettleNotFound,
    UnadmittedHold,
    UnadmittedHolds,
)
from upstream.admission.contracts.manifest import AdmissionRefusal, AdmissionTerms, RunAdmissionManifest
from upstream.admission.contracts.refuse import (
    AlreadyAdmitted,
    RefusalAnswers,
    RefusalConflicting,
    RefusalStored,
    UnadmittedOperation,
    UnadmittedOperations,
)
from upstream.admission.contracts.request import EstimatedQuantity, RunAdmissionRequest

HOLD_AMOUNT_PICOS = "1086600000"
PRICE_BOOK: ContentReference = reference("price-book")
REQUEST = RunAdmissionRequest(
    tenant_kind="organization",
    tenant_id="tenant:acme",
    workspace_id="workspace:research",
    project_id="project:weather",
    operation_id="operation:01",
    correlation_id="correlation:01",
    billing_account_id="account:acme",
    requested_at=OCCURRED_AT,
    estimated_quantities=(
        EstimatedQuantity(charge_dimension_key="llm.input_tokens", quantity=4808),
        EstimatedQuantity(charge_dimension_key="llm.output_tokens", quantity=10),
    ),
)
MANIFEST = RunAdmissionManifest.of(
    REQUEST,
    terms=AdmissionTerms(price_book=PRICE_BOOK, currency="USD", hold_amount_picos=int(HOLD_AMOUNT_PICOS)),
    admitted_at="2026-09-24T10:15:30.250000Z",
)
REFUSAL = AdmissionRefusal.of(
    operation_id="operation:02",
    request_sha256="ef" * 32,
    reason="admission_abandoned",
    refused_at="2026-09-24T10:17:00.000000Z",
)

EXAMPLES: dict[str, Contract] = {
    "RunAdmissionManifest": MANIFEST,
    "AdmissionRefusal": REFUSAL,
    "RunCreated": RunCreated(
        run_id=MANIFEST.run_id,
        billing_account_id=MANIFEST.billing_account_id,
        billing_reservation_id=MANIFEST.billing_reservation_id,
        run_admission_manifest=MANIFEST.reference,
    ),
    "WalletReserved": WalletReserved(
        billing_reservation_id=MANIFEST.billing_reservation_id,
        billing_account_id=MANIFEST.billing_account_id,
        run_id=MANIFEST.run_id,
        currency=MANIFEST.currency,
        hold_amount_picos=HOLD_AMOUNT_PICOS,
        run_admission_manifest=MANIFEST.reference,
    ),
    "HoldForRuns": HoldForRuns(requests=(REQUEST,)),
    "HoldAnswers": HoldAnswers(
        answers=(
            Held(
                operation_id="operation:01",
                billing_reservation_id=MANIFEST.billing_reservation_id,
                price_book=PRICE_BOOK,
                currency="USD",
                hold_amount_picos=HOLD_AMOUNT_PICOS,
                run_admission_manifest=MANIFEST.reference,
            ),
            HoldRefused(operation_id="operation:03", reason="insufficient_funds"),
            HoldReleased(operation_id="operation:02", admission_refusal=REFUSAL.reference),
            HoldConflicting(operation_id="operation:04"),
        )
    ),
    "AdmittedHolds": AdmittedHolds(
        holds=(AdmittedHold(operation_id="operation:01", run_admission_manifest=MANIFEST.reference),)
    ),
    "UnadmittedHolds": UnadmittedHolds(
        holds=(
            UnadmittedHold(operation_id="operation:02", request_sha256="ef" * 32, admission_refusal=REFUSAL.reference),
        )
    ),
    "SettleAnswers": SettleAnswers(
        answers=(
            Confirmed(operation_id="operation:01"),
            Released(operation_id="operation:02"),
            SettleNotFound(operation_id="operation:03"),
            SettleConflicting(operation_id="operation:04"),
        )
    ),
    "UnadmittedOperations": UnadmittedOperations(
        operations=(UnadmittedOperation(operation_id="operation:02", request_sha256="ef" * 32),)
    ),
    "RefusalAnswers": RefusalAnswers(
        answers=(
            RefusalStored(operation_id="operation:02", admission_refusal=REFUSAL.reference),
            AlreadyAdmitted(operation_id="operation:01", run_admission_manifest=MANIFEST.reference),
            RefusalConflicting(operation_id="operation:04"),
        )
    ),
}
