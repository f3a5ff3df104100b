"""Events of the first release for tests: plain functions that only make consistent facts."""

import uuid
from datetime import UTC, datetime

from outbox.append import Event, new_event_id
from outbox.contracts.contract import ContentReference
from upstream.admission.contracts import RunCreated, WalletReserved

MANIFEST = ContentReference(ref="run-admission-manifest:1", schema_version="1", digest="0" * 64)


def run_created(*, name: str | None = None, event_id: uuid.UUID | None = None, **changes: object) -> Event:
    """A `run.created` of a run of its own."""
    name = name or uuid.uuid4().hex
    values: dict[str, object] = {
        "event_type": "run.created@2.0",
        "event_schema_version": "2.0",
        "aggregate_id": f"run:{name}",
        "aggregate_revision": 1,
        "tenant_kind": "organization",
        "tenant_id": "org-1",
        "workspace_id": "ws-1",
        "correlation_id": f"corr:{name}",
        "operation_id": f"op:{name}",
        "occurred_at": datetime.now(UTC),
        "event_id": event_id or new_event_id(),
        "payload": RunCreated(
            run_id=f"run:{name}",
            billing_account_id="acct:1",
            billing_reservation_id=f"res:{name}",
            run_admission_manifest=MANIFEST,
        ),
    }
    return Event(**{**values, **changes})  # type: ignore[arg-type]  # changes are checked by the dataclass's users


def wallet_reserved(*, name: str, caused_by: uuid.UUID, **changes: object) -> Event:
    """The `wallet.reserved` that belongs to `run_created(name=name)`."""
    values: dict[str, object] = {
        "event_type": "wallet.reserved@2.0",
        "event_schema_version": "2.0",
        "aggregate_id": f"res:{name}",
        "aggregate_revision": 1,
        "tenant_kind": "organization",
        "tenant_id": "org-1",
        "workspace_id": "ws-1",
        "correlation_id": f"corr:{name}",
        "operation_id": f"op:{name}",
        "causation_id": str(caused_by),
        "occurred_at": datetime.now(UTC),
        "event_id": new_event_id(),
        "payload": WalletReserved(
            billing_reservation_id=f"res:{name}",
            billing_account_id="acct:1",
            run_id=f"run:{name}",
            currency="USD",
            hold_amount_picos="1000",
            run_admission_manifest=MANIFEST,
        ),
    }
    return Event(**{**values, **changes})  # type: ignore[arg-type]  # as above


def admission(name: str | None = None) -> list[Event]:
    """Both events of one admission, in order."""
    name = name or uuid.uuid4().hex
    run = run_created(name=name)
    assert run.event_id is not None
    return [run, wallet_reserved(name=name, caused_by=run.event_id)]
