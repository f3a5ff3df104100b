"""The payloads of `run.created@2.0` and `wallet.reserved@2.0`, and the check of one against the other (O7, O29)."""

from outbox.contracts.contract import ContentReference, Contract, DecimalString, Identifier
from outbox.contracts.envelope import Envelope, event_payload
from upstream.admission.contracts.request import Currency

RUN_CREATED, RUN_CREATED_VERSION = "run.created@2.0", "2.0"
WALLET_RESERVED, WALLET_RESERVED_VERSION = "wallet.reserved@2.0", "2.0"


@event_payload(RUN_CREATED, RUN_CREATED_VERSION)
class RunCreated(Contract):
    """A run was admitted. Aggregate: the run id, revision 1."""

    run_id: Identifier
    billing_account_id: Identifier
    billing_reservation_id: Identifier
    run_admission_manifest: ContentReference


@event_payload(WALLET_RESERVED, WALLET_RESERVED_VERSION)
class WalletReserved(Contract):
    """Money is held for the run. Aggregate: the reservation id, revision 1; caused by the run's `run.created`."""

    billing_reservation_id: Identifier
    billing_account_id: Identifier
    run_id: Identifier
    currency: Currency
    hold_amount_picos: DecimalString
    run_admission_manifest: ContentReference


COMPARED = (
    "causation_id",
    "operation_id",
    "correlation_id",
    "tenant_kind",
    "tenant_id",
    "workspace_id",
    "project_id",
    "run_aggregate",
    "wallet_aggregate",
    "run_id",
    "billing_account_id",
    "billing_reservation_id",
    "run_admission_manifest",
)
"""What both events of one admission say, in the order in which it is compared."""


def disagreements(
    *, run_envelope: Envelope, run: RunCreated, wallet_envelope: Envelope, wallet: WalletReserved
) -> tuple[str, ...]:
    """Names of what the two events of one admission say differently; empty if they belong together.

    Whoever joins a reservation with its run calls this first (O29).
    """
    of_run = (
        run_envelope.event_id,
        run_envelope.operation_id,
        run_envelope.correlation_id,
        run_envelope.tenant_kind,
        run_envelope.tenant_id,
        run_envelope.workspace_id,
        run_envelope.project_id,
        run_envelope.aggregate_id,
        wallet_envelope.aggregate_id,
        run.run_id,
        run.billing_account_id,
        run.billing_reservation_id,
        run.run_admission_manifest,
    )
    of_wallet = (
        wallet_envelope.causation_id,
        wallet_envelope.operation_id,
        wallet_envelope.correlation_id,
        wallet_envelope.tenant_kind,
        wallet_envelope.tenant_id,
        wallet_envelope.workspace_id,
        wallet_envelope.project_id,
        run.run_id,
        wallet.billing_reservation_id,
        wallet.run_id,
        wallet.billing_account_id,
        wallet.billing_reservation_id,
        wallet.run_admission_manifest,
    )
    if of_run == of_wallet:
        return ()
    pairs = zip(COMPARED, of_run, of_wallet, strict=True)
    return tuple(name for name, said_by_run, said_by_wallet in pairs if said_by_run != said_by_wallet)
