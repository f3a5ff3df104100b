"""Store that an operation's run will never exist, under the same unique key as the run's admission.

A commit of the run that comes later fails, one that is under way is waited for; so what this answers is final.
"""

from collections.abc import Sequence
from datetime import datetime

import orjson
from django.db import connections, transaction

from outbox.contracts.canonical import encode_trusted
from outbox.contracts.contract import timestamp
from upstream.admission.contracts import AdmissionRefusal, AdmissionRefusalReason, UnadmittedOperation
from upstream.admission.outcomes import ALIAS, Outcome, read_outcomes

REFUSE = """
WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS g (
        operation text, request text, refusal text, version text, algorithm text, digest text, candidate text,
        reason text, at timestamptz)
), decided AS (
    INSERT INTO admission_outcomes (operation_id, request_sha256, state, admission_refusal_id)
    SELECT operation, request, 'refused', refusal FROM given ORDER BY operation
    ON CONFLICT (operation_id) DO NOTHING RETURNING operation_id
)
INSERT INTO admission_refusals (
    admission_refusal_ref, schema_version, digest_algorithm_version, digest, candidate, reason, refused_at)
SELECT refusal, version, algorithm, digest, candidate, reason, at
  FROM given JOIN decided ON decided.operation_id = given.operation
"""


def refuse_operations(
    operations: Sequence[UnadmittedOperation], *, reason: AdmissionRefusalReason, at: datetime
) -> dict[str, Outcome]:
    """Refuse each operation that has no outcome; returns the outcome that every one of them has now."""
    rows = [_row(operation, reason=reason, at=timestamp(at)) for operation in operations]
    with transaction.atomic(using=ALIAS, durable=True):
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(REFUSE, [orjson.dumps(rows).decode()])
        return read_outcomes([operation.operation_id for operation in operations])


def _row(operation: UnadmittedOperation, *, reason: AdmissionRefusalReason, at: str) -> dict[str, str]:
    refusal = AdmissionRefusal.of(
        operation_id=operation.operation_id, request_sha256=operation.request_sha256, reason=reason, refused_at=at
    )
    named = refusal.reference
    return {
        "operation": operation.operation_id,
        "request": operation.request_sha256,
        "refusal": named.ref,
        "version": named.schema_version,
        "algorithm": named.digest_algorithm_version,
        "digest": named.digest,
        "candidate": encode_trusted(refusal.candidate()).decode(),
        "reason": reason,
        "at": at,
    }
