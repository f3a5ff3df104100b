"""Replay a trace as admissions: one run per row, the same operation for the same row of the same file, always.

A replay that was killed is simply run again: rows that were admitted get their old answer, a hold without a run goes on
to be one, the rest is admitted.
"""

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from django.db import connections
from django.utils import timezone

from config.owners import owner_named
from upstream.admission.admit import admit_runs
from upstream.admission.contracts import EstimatedQuantity, RunAdmissionRequest
from upstream.admission.outcomes import Admitted, Refused
from upstream.admission.trace import BadRow, TraceRow, read_trace

EXAMPLES = 3
"""Admissions whose ids are shown."""
ROWS_PER_CORRELATION = 10


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose runs a row may become."""

    tenant_kind: str
    tenant_id: str
    billing_account_id: str


@dataclass(slots=True)
class Replayed:
    """What one replay did. `events` and `deliveries` are those of this trace that the database holds afterwards."""

    trace_sha256: str
    rows: int = 0
    runs: int = 0
    new_runs: int = 0
    events: int = 0
    deliveries: int = 0
    skipped: list[BadRow] = field(default_factory=list)
    not_admitted: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, str]] = field(default_factory=list)


def replay(
    path: Path, *, payers: Sequence[Payer], limit: int | None, batch: int, progress: Callable[[int], None]
) -> Replayed:
    """Admit the first `limit` rows, `batch` at a time; `progress` is told how many lines were done."""
    with path.open("rb") as file:
        done = Replayed(trace_sha256=hashlib.file_digest(file, "sha256").hexdigest())
    before = _counts(done.trace_sha256)
    rows = islice(read_trace(path), limit)
    while lines := list(islice(rows, batch)):
        done.skipped += [line for line in lines if isinstance(line, BadRow)]
        good = [line for line in lines if isinstance(line, TraceRow)]
        if good:
            _admit(good, payers=payers, done=done)
        progress(len(lines))
    done.runs, done.events, done.deliveries = _counts(done.trace_sha256)
    done.new_runs = done.runs - before[0]
    return done


def _admit(rows: Sequence[TraceRow], *, payers: Sequence[Payer], done: Replayed) -> None:
    requests = [_request(row, trace=done.trace_sha256, payers=payers) for row in rows]
    done.rows += len(rows)
    for request, answer in zip(requests, admit_runs(requests, at=timezone.now()), strict=True):
        if isinstance(answer, Admitted):
            if len(done.examples) < EXAMPLES:
                done.examples.append(_example(request, answer))
        else:
            done.not_admitted[answer.reason if isinstance(answer, Refused) else type(answer).__name__.lower()] += 1


def _prefix(trace: str) -> str:
    return f"trace:{trace[:16]}:"


def _request(row: TraceRow, *, trace: str, payers: Sequence[Payer]) -> RunAdmissionRequest:
    operation = f"{_prefix(trace)}{row.line}"
    drawn = zlib.crc32(operation.encode())
    payer = payers[drawn % len(payers)]
    name = payer.tenant_id.partition(":")[2] or payer.tenant_id
    return RunAdmissionRequest(
        tenant_kind="organization" if payer.tenant_kind == "organization" else "personal",
        tenant_id=payer.tenant_id,
        workspace_id=f"workspace:{name}:{'research' if drawn & 0x100 else 'production'}",
        operation_id=operation,
        correlation_id=f"session:{trace[:16]}:{row.line // ROWS_PER_CORRELATION}",
        billing_account_id=payer.billing_account_id,
        requested_at=row.requested_at,
        estimated_quantities=(
            EstimatedQuantity(charge_dimension_key="llm.input_tokens", quantity=row.context_tokens),
            EstimatedQuantity(charge_dimension_key="llm.output_tokens", quantity=row.generated_tokens),
        ),
    )


def _example(request: RunAdmissionRequest, answer: Admitted) -> dict[str, str]:
    return {
        "operationId": answer.operation_id,
        "correlationId": request.correlation_id,
        "runId": answer.run_id,
        "billingReservationId": answer.billing_reservation_id,
        "runCreatedEventId": str(answer.run_created_event_id),
        "walletReservedEventId": str(answer.wallet_reserved_event_id),
    }


COUNTS = """
SELECT (SELECT count(*) FROM runs WHERE starts_with(operation_id, %(prefix)s)),
       (SELECT count(*) FROM outbox_events WHERE starts_with(operation_id, %(prefix)s)),
       (SELECT count(*) FROM outbox_deliveries d JOIN outbox_events e ON e.event_id = d.event_id
         WHERE starts_with(e.operation_id, %(prefix)s))
"""


def _counts(trace: str) -> tuple[int, int, int]:
    with connections[owner_named("core").read_alias].cursor() as cursor:
        cursor.execute(COUNTS, {"prefix": _prefix(trace)})
        runs, events, deliveries = cursor.fetchone()
    return runs, events, deliveries


def count_lines(path: Path) -> int:
    """Lines after the header, however long they are, counted without keeping them."""
    with path.open("rb") as file:
        ends, last = 0, b"\n"
        while block := file.read(1 << 20):
            ends += block.count(b"\n")
            last = block[-1:]
    return max(ends + (last != b"\n") - 1, 0)
