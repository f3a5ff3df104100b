"""Core's one transaction of an admission: outcome, run, manifest, wallet reservation and both events, or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
from django.db import transaction

from outbox.append import Event, append_many, new_event_id
from outbox.contracts.canonical import encode_trusted
from outbox.contracts.contract import timestamp
from outbox.raw import raw_cursor
from outbox.steps import reach
from upstream.admission.contracts import (
    RUN_CREATED,
    RUN_CREATED_VERSION,
    WALLET_RESERVED,
    WALLET_RESERVED_VERSION,
    AdmissionTerms,
    Held,
    RunAdmissionManifest,
    RunAdmissionRequest,
    RunCreated,
    WalletReserved,
)
from upstream.admission.outcomes import ALIAS, Admitted

COMMIT = """
WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS g (
        operation text, request text, run text, tenant_kind text, tenant text, workspace text, project text,
        account text, reservation text, currency text, picos numeric, manifest text, version text, algorithm text,
        digest text, candidate text, run_event uuid, wallet_event uuid, at timestamptz)
), decided AS (
    INSERT INTO admission_outcomes (operation_id, request_sha256, state, run_id)
    SELECT operation, request, 'admitted', run FROM given ORDER BY operation
    ON CONFLICT (operation_id) DO NOTHING RETURNING operation_id
), won AS (
    SELECT given.* FROM given JOIN decided ON decided.operation_id = given.operation
), manifests AS (
    INSERT INTO run_admission_manifests (
        run_admission_manifest_ref, schema_version, digest_algorithm_version, digest, candidate, run_id, admitted_at)
    SELECT manifest, version, algorithm, digest, candidate, run, at FROM won
), wallets AS (
    INSERT INTO wallet_reservations (
        billing_reservation_id, run_id, billing_account_id, currency, hold_amount_picos, wallet_reserved_event_id,
        reserved_at)
    SELECT reservation, run, account, currency, picos, wallet_event, at FROM won
), admitted AS (
    INSERT INTO runs (
        run_id, operation_id, tenant_kind, tenant_id, workspace_id, project_id, billing_account_id,
        billing_reservation_id, run_admission_manifest_id, run_created_event_id, admitted_at)
    SELECT run, operation, tenant_kind, tenant, workspace, project, account, reservation, manifest, run_event, at
      FROM won
)
SELECT operation_id FROM decided
"""


class TermsDisagree(RuntimeError):
    """Billing named another manifest than core computes for the same request and terms. Permanent: releases differ."""


@dataclass(frozen=True, slots=True)
class _Admission:
    request: RunAdmissionRequest
    manifest: RunAdmissionManifest
    answer: Admitted


def commit_runs(held: Sequence[tuple[RunAdmissionRequest, Held]], *, at: datetime) -> dict[str, Admitted]:
    """Commit these runs; returns the admissions that are new, by operation id.

    An operation that has an outcome already, admitted or refused, is left out: read it afterwards. Raises whatever the
    database or the outbox refuses; then nothing was committed, unless the connection was lost at COMMIT itself.
    """
    admissions = [_prepare(request, hold, at=at) for request, hold in held]
    with transaction.atomic(using=ALIAS, durable=True):
        with raw_cursor(ALIAS) as cursor:
            cursor.execute(COMMIT, [orjson.dumps([_row(admission, at=at) for admission in admissions]).decode()])
            won = {operation for (operation,) in cursor.fetchall()}
        fresh = [admission for admission in admissions if admission.answer.operation_id in won]
        append_many([event for admission in fresh for event in _events(admission, at=at)], using=ALIAS)
        reach("admission.run_before_commit")
    return {admission.answer.operation_id: admission.answer for admission in fresh}


def _prepare(request: RunAdmissionRequest, hold: Held, *, at: datetime) -> _Admission:
    terms = AdmissionTerms(
        price_book=hold.price_book, currency=hold.currency, hold_amount_picos=int(hold.hold_amount_picos)
    )
    manifest = RunAdmissionManifest.of(request, terms=terms, admitted_at=timestamp(at))
    if manifest.reference != hold.run_admission_manifest:
        raise TermsDisagree(f"{request.operation_id}: {TermsDisagree.__doc__}")
    answer = Admitted(
        operation_id=request.operation_id,
        run_id=request.run_id,
        billing_reservation_id=request.billing_reservation_id,
        run_admission_manifest=manifest.reference,
        run_created_event_id=new_event_id(),
        wallet_reserved_event_id=new_event_id(),
    )
    return _Admission(request, manifest, answer)


def _row(admission: _Admission, *, at: datetime) -> dict[str, object]:
    request, manifest, answer = admission.request, admission.manifest, admission.answer
    named = answer.run_admission_manifest
    return {
        "operation": request.operation_id,
        "request": manifest.request_sha256,
        "run": answer.run_id,
        "tenant_kind": request.tenant_kind,
        "tenant": request.tenant_id,
        "workspace": request.workspace_id,
        "project": request.project_id,
        "account": request.billing_account_id,
        "reservation": answer.billing_reservation_id,
        "currency": manifest.currency,
        "picos": manifest.hold_amount_picos,
        "manifest": named.ref,
        "version": named.schema_version,
        "algorithm": named.digest_algorithm_version,
        "digest": named.digest,
        "candidate": encode_trusted(manifest.candidate()).decode(),
        "run_event": answer.run_created_event_id,
        "wallet_event": answer.wallet_reserved_event_id,
        "at": timestamp(at),
    }


def _events(admission: _Admission, *, at: datetime) -> tuple[Event, Event]:
    request, manifest, answer = admission.request, admission.manifest, admission.answer
    run = _event(
        request,
        event_type=RUN_CREATED,
        event_schema_version=RUN_CREATED_VERSION,
        aggregate_id=answer.run_id,
        at=at,
        event_id=answer.run_created_event_id,
        payload=RunCreated(
            run_id=answer.run_id,
            billing_account_id=request.billing_account_id,
            billing_reservation_id=answer.billing_reservation_id,
            run_admission_manifest=answer.run_admission_manifest,
        ),
    )
    wallet = _event(
        request,
        event_type=WALLET_RESERVED,
        event_schema_version=WALLET_RESERVED_VERSION,
        aggregate_id=answer.billing_reservation_id,
        at=at,
        event_id=answer.wallet_reserved_event_id,
        causation_id=str(answer.run_created_event_id),
        payload=WalletReserved(
            billing_reservation_id=answer.billing_reservation_id,
            billing_account_id=request.billing_account_id,
            run_id=answer.run_id,
            currency=manifest.currency,
            hold_amount_picos=manifest.hold_amount_picos,
            run_admission_manifest=answer.run_admission_manifest,
        ),
    )
    return run, wallet


def _event(request: RunAdmissionRequest, *, at: datetime, **fields: object) -> Event:
    return Event(
        aggregate_revision=1,
        tenant_kind=request.tenant_kind,
        tenant_id=request.tenant_id,
        workspace_id=request.workspace_id,
        project_id=request.project_id,
        correlation_id=request.correlation_id,
        operation_id=request.operation_id,
        occurred_at=at,
        **fields,  # type: ignore[arg-type]  # the two callers above name the rest of the fields
    )
