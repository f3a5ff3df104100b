"""Reserve money for runs: hold, reservation, finalization fence and first work, in one billing transaction.

Idempotent by operation id. A batch is decided in its order: an earlier request's hold lowers what a later one finds.
Refusals write nothing. Rows are locked in one order (accounts, then new operation ids), so batches never deadlock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
from django.db import connections

from billing.finalization.contracts import BillingFinalizationWork
from billing.ledger.accounts import Account, lock_accounts
from billing.ledger.hold import Hold, place_holds
from billing.ledger.models import ChargeSource
from billing.ledger.post import ALIAS, translated_transaction
from billing.pricing.books import prices_of
from billing.pricing.errors import UnknownPrice
from billing.pricing.quote import quote
from outbox.contracts.canonical import encode_trusted
from outbox.contracts.contract import ContentReference, timestamp
from outbox.steps import reach
from upstream.admission.contracts import (
    AdmissionTerms,
    Held,
    HoldAnswer,
    HoldConflicting,
    HoldRefusal,
    HoldRefused,
    HoldReleased,
    RunAdmissionManifest,
    RunAdmissionRequest,
)

MAX_LOST_RACES = 5
"""Each lost race means that another transaction committed one of our operations; the next round finds it."""

KNOWN = """
SELECT r.operation_id, r.request_sha256, r.state, r.billing_reservation_id, h.currency, h.amount_picos,
       r.price_book_id, b.schema_version, b.digest_algorithm_version, b.digest,
       r.run_admission_manifest_ref, r.run_admission_manifest_schema_version,
       r.run_admission_manifest_digest_algorithm_version, r.run_admission_manifest_digest,
       r.admission_refusal_ref, r.admission_refusal_schema_version,
       r.admission_refusal_digest_algorithm_version, r.admission_refusal_digest
  FROM billing_reservations r
  JOIN ledger_holds h ON h.hold_id = r.billing_reservation_id
  JOIN price_books b ON b.price_book_ref = r.price_book_id
 WHERE r.operation_id = ANY (%s)
"""
TERMS = """
SELECT a.billing_account_id, w.balance_picos, b.price_book_ref, b.schema_version, b.digest_algorithm_version, b.digest
  FROM billing_accounts a
  JOIN ledger_accounts w ON w.ledger_account_id = 'wallet:' || a.billing_account_id
  LEFT JOIN LATERAL (
        SELECT * FROM price_books p
         WHERE p.name = a.price_book_name AND p.currency = a.currency AND p.effective_from <= %s
         ORDER BY p.effective_from DESC LIMIT 1) b ON true
 WHERE a.billing_account_id = ANY (%s)
"""
RESERVE = """
WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS g (
        reservation text, operation text, request text, run text, account text, book text, manifest text,
        manifest_version text, manifest_algorithm text, manifest_digest text, fence text, work text, work_version text,
        work_algorithm text, work_digest text, work_text text, work_operation text, created timestamptz)
), reserved AS (
    INSERT INTO billing_reservations (
        billing_reservation_id, operation_id, request_sha256, run_id, billing_account_id, price_book_id,
        run_admission_manifest_ref, run_admission_manifest_schema_version,
        run_admission_manifest_digest_algorithm_version, run_admission_manifest_digest)
    SELECT reservation, operation, request, run, account, book, manifest, manifest_version, manifest_algorithm,
           manifest_digest
      FROM given ORDER BY operation
    ON CONFLICT (operation_id) DO NOTHING RETURNING billing_reservation_id
), fenced AS (
    INSERT INTO billing_finalization_fences (
        billing_finalization_fence_id, billing_reservation_id, run_id, active_work_id)
    SELECT fence, reservation, run, work FROM given
      JOIN reserved ON reserved.billing_reservation_id = given.reservation
), worked AS (
    INSERT INTO billing_finalization_works (
        billing_finalization_work_ref, schema_version, digest_algorithm_version, digest, candidate, fence_id,
        work_generation, billing_finalization_operation_id, created_at)
    SELECT work, work_version, work_algorithm, work_digest, work_text, fence, 1, work_operation, created FROM given
      JOIN reserved ON reserved.billing_reservation_id = given.reservation
)
SELECT count(*) FROM reserved
"""


class AdmissionContended(RuntimeError):
    """Other transactions kept taking the same operations. Transient: repeat the request."""


class _LostRace(Exception):
    """Another transaction committed one of our operations between our look and our write."""


@dataclass(slots=True)
class _Terms:
    balance_picos: int
    price_book: ContentReference | None


def hold_for_runs(requests: Sequence[RunAdmissionRequest], *, at: datetime) -> list[HoldAnswer]:
    """One answer per request, in order. Raises `AdmissionContended`, `LedgerError`."""
    for _ in range(MAX_LOST_RACES):
        try:
            with translated_transaction():
                return _hold(requests, at=at)
        except _LostRace:
            continue
    raise AdmissionContended(AdmissionContended.__doc__)


def _hold(requests: Sequence[RunAdmissionRequest], *, at: datetime) -> list[HoldAnswer]:
    accounts = lock_accounts({request.billing_account_id for request in requests})
    known = _known([request.operation_id for request in requests])
    fresh = [request for request in requests if request.operation_id not in known]
    terms = _terms(accounts, at=at) if fresh else {}
    taken: dict[str, tuple[str, HoldAnswer]] = dict(known)
    manifests: list[RunAdmissionManifest] = []
    answers: list[HoldAnswer] = []
    for request in requests:
        digest = request.request_sha256()
        first = taken.get(request.operation_id)
        if first is None:
            answer, manifest = _decide(request, account=accounts.get(request.billing_account_id), terms=terms, at=at)
            taken[request.operation_id] = digest, answer
            if manifest is not None:
                manifests.append(manifest)
        elif first[0] == digest:
            answer = first[1]
        else:
            answer = HoldConflicting(operation_id=request.operation_id)
        answers.append(answer)
    _write(manifests, at=at)
    reach("admission.hold_before_commit")
    return answers


def _decide(
    request: RunAdmissionRequest, *, account: Account | None, terms: dict[str, _Terms], at: datetime
) -> tuple[HoldAnswer, RunAdmissionManifest | None]:
    def refused(reason: HoldRefusal) -> tuple[HoldAnswer, None]:
        return HoldRefused(operation_id=request.operation_id, reason=reason), None

    if account is None or account.tenant_ref != f"{request.tenant_kind}:{request.tenant_id}":
        return refused("unknown_account")
    if account.charge_source != ChargeSource.RUNS:
        return refused("charge_source_not_runs")
    own = terms[account.billing_account_id]
    if own.price_book is None:
        return refused("no_price_book")
    try:
        estimated = ((item.charge_dimension_key, item.quantity) for item in request.estimated_quantities)
        amount = quote(estimated, prices=prices_of(own.price_book))
    except UnknownPrice:
        return refused("unknown_price")
    if amount > own.balance_picos:
        return refused("insufficient_funds")
    own.balance_picos -= amount
    agreed = AdmissionTerms(price_book=own.price_book, currency=account.currency, hold_amount_picos=amount)
    manifest = RunAdmissionManifest.of(request, terms=agreed, admitted_at=timestamp(at))
    held = Held(
        operation_id=request.operation_id,
        billing_reservation_id=request.billing_reservation_id,
        price_book=own.price_book,
        currency=account.currency,
        hold_amount_picos=str(amount),
        run_admission_manifest=manifest.reference,
    )
    return held, manifest


def _write(manifests: Sequence[RunAdmissionManifest], *, at: datetime) -> None:
    if not manifests:
        return
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(RESERVE, [orjson.dumps([_row(manifest, at=at) for manifest in manifests]).decode()])
        (reserved,) = cursor.fetchone()
    if reserved != len(manifests):
        raise _LostRace
    place_holds(
        [
            Hold(
                hold_id=manifest.billing_reservation_id,
                billing_account_id=manifest.billing_account_id,
                currency=manifest.currency,
                amount_picos=int(manifest.hold_amount_picos),
            )
            for manifest in manifests
        ]
    )


def _row(manifest: RunAdmissionManifest, *, at: datetime) -> dict[str, str]:
    created = timestamp(at)
    work = BillingFinalizationWork.first(manifest, created_at=created)
    named, of_work = manifest.reference, work.reference
    return {
        "reservation": manifest.billing_reservation_id,
        "operation": manifest.operation_id,
        "request": manifest.request_sha256,
        "run": manifest.run_id,
        "account": manifest.billing_account_id,
        "book": manifest.price_book.ref,
        "manifest": named.ref,
        "manifest_version": named.schema_version,
        "manifest_algorithm": named.digest_algorithm_version,
        "manifest_digest": named.digest,
        "fence": work.billing_finalization_fence_id,
        "work": of_work.ref,
        "work_version": of_work.schema_version,
        "work_algorithm": of_work.digest_algorithm_version,
        "work_digest": of_work.digest,
        "work_text": encode_trusted(work.candidate()).decode(),
        "work_operation": work.billing_finalization_operation_id,
        "created": created,
    }


def _known(operation_ids: Sequence[str]) -> dict[str, tuple[str, HoldAnswer]]:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(KNOWN, [list(operation_ids)])
        return {row[0]: (row[1], _answer(row)) for row in cursor.fetchall()}


def _answer(row: tuple[str, ...]) -> HoldAnswer:
    operation_id, _, state, reservation, currency, picos = row[:6]
    if state == "released":
        return HoldReleased(operation_id=operation_id, admission_refusal=_reference(row[14:18]))
    return Held(
        operation_id=operation_id,
        billing_reservation_id=reservation,
        price_book=_reference(row[6:10]),
        currency=currency,
        hold_amount_picos=str(int(picos)),
        run_admission_manifest=_reference(row[10:14]),
    )


def _reference(parts: tuple[str, ...]) -> ContentReference:
    ref, schema_version, algorithm, digest = parts
    return ContentReference(
        ref=ref,
        schema_version=schema_version,
        digest_algorithm_version=algorithm,  # type: ignore[arg-type]  # the column admits the one algorithm only
        digest=digest,
    )


def _terms(accounts: dict[str, Account], *, at: datetime) -> dict[str, _Terms]:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(TERMS, [at, list(accounts)])
        return {
            account: _Terms(int(balance), _reference((ref, *rest)) if ref else None)
            for account, balance, ref, *rest in cursor.fetchall()
        }
