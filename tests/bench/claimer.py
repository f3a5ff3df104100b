"""Child: claims a whole backlog batch by batch and settles it, timing each claim; some retry, some are abandoned.

Of every batch, some rows are put back with a short delay and some are left to their lease, which runs out, so that
retries and recovered leases lie among the rest as they would in a bad hour.
"""

import argparse
import time

import django

from tests.bench import children

BATCH, LEASE_SECONDS = 500, 3
RETRIED_OF_THOUSAND, ABANDONED_OF_THOUSAND = 20, 4
LAST_ATTEMPT = 3
"""From this attempt on a row is acknowledged, so that the backlog ends."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hold-snapshot", action="store_true", help="Keep a snapshot open in another session.")
    chosen = parser.parse_args()
    django.setup()
    from django.conf import settings
    from django.db import connections

    from outbox.claim import Claimer
    from outbox.contracts.contract import ContentReference
    from outbox.members import Members
    from outbox.rows import Ack, Claimed, Retry, Settlement
    from outbox.settle import settle

    claimer = Claimer(
        worker="bench",
        members=Members("default.dispatch"),
        batch=BATCH,
        lease=LEASE_SECONDS,
        full_scan_every=settings.OUTBOX_FULL_SCAN_EVERY,
    )
    wrapper, holder = connections["default.dispatch"], connections["default.read"]
    wrapper.ensure_connection()
    if chosen.hold_snapshot:
        with holder.cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = 0")
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM delivery_set_versions")

    def judge(rows: list[Claimed]) -> Settlement:
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

    children.wait_for_start()
    claims: list[tuple[float, int, int, bool]] = []
    done = recovered = 0
    quiet_until = 0.0
    while True:
        before = time.perf_counter()
        claim = claimer.claim(wrapper.connection, "core_operations")
        spent = time.perf_counter() - before
        recovered += claim.recovered
        if not claim.rows:
            if claim.full and time.monotonic() > quiet_until > 0:
                break
            if quiet_until == 0:
                quiet_until = time.monotonic() + LEASE_SECONDS + 3
            time.sleep(0.05)
            continue
        quiet_until = 0.0
        claims.append((spent, len(claim.rows), claim.recovered, claim.full))
        settled = settle(wrapper.connection, judge(claim.rows), producer="core", destination="core_operations")
        done += settled.acknowledged
    children.answer(claims=claims, acknowledged=done, recovered=recovered)


if __name__ == "__main__":
    main()
