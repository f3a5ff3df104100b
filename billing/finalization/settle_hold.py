"""How a reservation leaves the unconfirmed state: core admitted the run, or core stored a refusal.

Both are one conditional UPDATE per batch and may be repeated; whoever is second is told how it ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from django.db import connections

from billing.ledger.accounts import lock_accounts
from billing.ledger.hold import release_holds
from billing.ledger.post import ALIAS, translated_transaction
from outbox.contracts.contract import ContentReference
from outbox.steps import reach
from upstream.admission.contracts import (
    AdmittedHold,
    Confirmed,
    Released,
    SettleAnswer,
    SettleConflicting,
    SettleNotFound,
    UnadmittedHold,
)

CONFIRM = """
UPDATE billing_reservations r SET confirmed_at = now()
  FROM json_to_recordset(%s::json) AS g (operation text, ref text, version text, algorithm text, digest text)
 WHERE r.operation_id = ANY (%s) AND r.operation_id = g.operation AND r.state || '' = 'open' AND r.confirmed_at IS NULL
   AND r.run_admission_manifest_ref = g.ref AND r.run_admission_manifest_schema_version = g.version
   AND r.run_admission_manifest_digest_algorithm_version = g.algorithm AND r.run_admission_manifest_digest = g.digest
"""
RELEASE = """
WITH released AS (
    UPDATE billing_reservations r
       SET state = 'released', released_at = now(), admission_refusal_ref = g.ref,
           admission_refusal_schema_version = g.version, admission_refusal_digest_algorithm_version = g.algorithm,
           admission_refusal_digest = g.digest
      FROM json_to_recordset(%s::json) AS g (
           operation text, request text, ref text, version text, algorithm text, digest text)
     WHERE r.operation_id = ANY (%s) AND r.operation_id = g.operation AND r.request_sha256 = g.request
       AND r.state || '' = 'open' AND r.confirmed_at IS NULL
    RETURNING r.billing_reservation_id
), closed AS (
    UPDATE billing_finalization_fences f
       SET coordination_state = 'unadmitted', active_work_id = NULL, fence_revision = f.fence_revision + 1
      FROM released WHERE f.billing_reservation_id = released.billing_reservation_id
)
SELECT billing_reservation_id FROM released
"""
"""`state || ''` keeps the planner off the partial index of unconfirmed rows: it guesses its size wrong."""
STANDING = """
SELECT operation_id, billing_account_id, request_sha256, state, confirmed_at IS NOT NULL,
       run_admission_manifest_ref, run_admission_manifest_schema_version,
       run_admission_manifest_digest_algorithm_version, run_admission_manifest_digest,
       admission_refusal_ref, admission_refusal_schema_version, admission_refusal_digest_algorithm_version,
       admission_refusal_digest
  FROM billing_reservations WHERE operation_id = ANY (%s)
"""


@dataclass(frozen=True, slots=True)
class _Standing:
    billing_account_id: str
    request_sha256: str
    state: str
    confirmed: bool
    manifest: tuple[str | None, ...]
    refusal: tuple[str | None, ...]


def confirm_holds(holds: Sequence[AdmittedHold]) -> list[SettleAnswer]:
    """Core has these runs, with these manifests. One answer per hold, in order."""
    rows = [_document(hold.operation_id, hold.run_admission_manifest) for hold in holds]
    with translated_transaction():
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(CONFIRM, [orjson.dumps(rows).decode(), [hold.operation_id for hold in holds]])
            confirmed = cursor.rowcount
        reach("admission.confirm_before_commit")
        if confirmed == len(holds):
            return [Confirmed(operation_id=hold.operation_id) for hold in holds]
        standing = _standing([hold.operation_id for hold in holds])
    return [_how_confirmed(hold, standing.get(hold.operation_id)) for hold in holds]


def release_holds_of(holds: Sequence[UnadmittedHold]) -> list[SettleAnswer]:
    """Core stored these refusals. Gives the money back and closes the fences. One answer per hold, in order."""
    operation_ids = [hold.operation_id for hold in holds]
    rows = [{**_document(hold.operation_id, hold.admission_refusal), "request": hold.request_sha256} for hold in holds]
    with translated_transaction():
        lock_accounts({row.billing_account_id for row in _standing(operation_ids).values()})
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(RELEASE, [orjson.dumps(rows).decode(), operation_ids])
            released = [reservation for (reservation,) in cursor.fetchall()]
        if released:
            release_holds(released)
            reach("admission.release_before_commit")
        standing = _standing(operation_ids)
    return [_how_released(hold, standing.get(hold.operation_id)) for hold in holds]


def _how_confirmed(hold: AdmittedHold, row: _Standing | None) -> SettleAnswer:
    if row is None:
        return SettleNotFound(operation_id=hold.operation_id)
    if row.confirmed and row.manifest == _parts(hold.run_admission_manifest):
        return Confirmed(operation_id=hold.operation_id)
    return SettleConflicting(operation_id=hold.operation_id)


def _how_released(hold: UnadmittedHold, row: _Standing | None) -> SettleAnswer:
    if row is None:
        return SettleNotFound(operation_id=hold.operation_id)
    if row.state == "released" and row.refusal == _parts(hold.admission_refusal):
        return Released(operation_id=hold.operation_id)
    return SettleConflicting(operation_id=hold.operation_id)


def _parts(reference: ContentReference) -> tuple[str, str, str, str]:
    return reference.ref, reference.schema_version, reference.digest_algorithm_version, reference.digest


def _document(operation_id: str, reference: ContentReference) -> dict[str, str]:
    names = ("ref", "version", "algorithm", "digest")
    return {"operation": operation_id, **dict(zip(names, _parts(reference), strict=True))}


def _standing(operation_ids: Sequence[str]) -> dict[str, _Standing]:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(STANDING, [list(operation_ids)])
        return {
            operation: _Standing(account, request, state, confirmed, tuple(named[:4]), tuple(named[4:]))
            for operation, account, request, state, confirmed, *named in cursor.fetchall()
        }
