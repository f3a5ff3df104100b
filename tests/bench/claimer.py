"""Child: claims a whole backlog batch by batch and settles it, timing each claim; some retry, some are abandoned.

Of every batch, some rows are put back with a short delay and some are left to their lease, which runs out, so that
retries and recovered leases lie among the rest as they would in a bad hour.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django

from tests.bench import children

BATCH, LEASE_SECONDS = 500, 3
RETRIED_OF_THOUSAND, ABANDONED_OF_THOUSAND = 20, 4
LAST_ATTEMPT = 3
"""From this attempt on a row is acknowledged, so that the backlog ends."""
QUIET_SECONDS = LEASE_SECONDS + 3
"""Nothing due for so long means that no lease is open any more either."""


class ProcessorOf:
    """Seconds of processor time that a local process has used; 0 where the kernel does not tell (Linux does)."""

    def __init__(self, pid: int) -> None:
        self._file = Path(f"/proc/{pid}/schedstat")
        self._told = self._file.exists()

    def __call__(self) -> float:
        return int(self._file.read_text().split()[0]) / 1e9 if self._told else 0.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hold-snapshot", action="store_true", help="Keep a snapshot open in another session.")
    chosen = parser.parse_args()
    django.setup()
    from django.db import connections

    wrapper, holder = connections["default.dispatch"], connections["default.read"]
    wrapper.ensure_connection()
    if chosen.hold_snapshot:
        with holder.cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM delivery_set_versions")
    children.wait_for_start()
    children.answer(**_drain(wrapper.connection))


def _drain(connection: Any) -> dict[str, Any]:
    from django.conf import settings

    from outbox.claim import Claimer
    from outbox.members import Members
    from outbox.settle import settle

    claimer = Claimer(
        worker="bench",
        members=Members("default.dispatch"),
        batch=BATCH,
        lease=LEASE_SECONDS,
        full_scan_every=settings.OUTBOX_FULL_SCAN_EVERY,
    )
    used = ProcessorOf(connection.info.backend_pid)
    claims: list[tuple[float, float, int]] = []
    done = recovered = 0
    work_until = time.monotonic() + QUIET_SECONDS
    while time.monotonic() < work_until:
        before, worked = time.perf_counter(), used()
        claim = claimer.claim(connection, "core_operations")
        spent, worked = time.perf_counter() - before, used() - worked
        if not claim.rows:
            time.sleep(0.05)
            continue
        recovered += claim.recovered
        claims.append((spent, worked, len(claim.rows)))
        done += settle(connection, _judge(claim.rows), producer="core", destination="core_operations").acknowledged
        work_until = time.monotonic() + QUIET_SECONDS
    return {"claims": claims, "acknowledged": done, "recovered": recovered}


def _judge(rows: Sequence[Any]) -> Any:
    from outbox.contracts.contract import ContentReference
    from outbox.rows import Ack, Retry, Settlement

    settlement = Settlement()
    for index, row in enumerate(rows):
        place = index * 1000 // len(rows) if row.attempt_count < LAST_ATTEMPT else 1000
        if place < ABANDONED_OF_THOUSAND:
            continue
        if place < ABANDONED_OF_THOUSAND + RETRIED_OF_THOUSAND:
            settlement.retries.append(Retry(row, "transient", "bench", "", 1.0))
        else:
            receipt = ContentReference(ref=f"bench:{row.event_id}", schema_version="1", digest=row.envelope_sha256)
            # Settling reads the receipt alone; the ack was judged before, where there is a consumer.
            settlement.acks.append(Ack(row, None, receipt))  # type: ignore[arg-type]  # the ack itself is not settled
    return settlement


if __name__ == "__main__":
    main()
