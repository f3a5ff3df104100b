"""Child: threads that reserve and settle, or what they are compared with, on one row or on many.

`reserve` and `settle` are timed apart; the markers between them, which the work's own transaction inserts, are not.
"""

import argparse
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import django

from tests.bench import children

LOCKED = "UPDATE bench_rows SET counted = counted + 1 WHERE row_id = %s"
PLAIN = (
    "INSERT INTO bench_plain (plain_id, counted) VALUES (%s, 0)",
    "UPDATE bench_plain SET counted = 1 WHERE plain_id = %s",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", choices=WORK, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--entitlements", type=int, required=True)
    parser.add_argument("--pairs", type=int, required=True)
    chosen = parser.parse_args()
    django.setup()
    from django.db import connections

    def connect(_: int) -> None:
        for alias in ("billing", "attachments"):
            connections[alias].ensure_connection()

    with ThreadPoolExecutor(chosen.threads) as threads:
        list(threads.map(connect, range(chosen.threads)))
        phases = WORK[chosen.work](chosen.pairs, chosen.entitlements)
        children.wait_for_start()
        seconds = {}
        for name, phase in phases:
            started = time.perf_counter()
            list(threads.map(phase, range(chosen.pairs), chunksize=1))
            seconds[name] = time.perf_counter() - started
    children.answer(**seconds)


Phases = list[tuple[str, Callable[[int], object]]]


def hooked(pairs: int, entitlements: int) -> Phases:
    """Reserve, leave the markers, settle: each phase over all operations before the next."""
    from django.db import transaction

    from billing.commercial import hooks
    from tests.bench.commercial.world import AT, DIMENSION, TOOL, tenant
    from tests.commercial.make import BUSINESS

    run = uuid.uuid4().hex
    permits: list[hooks.Permit | None] = [None] * pairs

    def reserve(index: int) -> None:
        operation = hooks.Operation(
            tenant_kind="organization",
            tenant_id=tenant(index % entitlements),
            tool=TOOL,
            dimension=DIMENSION,
            quantity_basis="events",
            identity=(run, str(index)),
        )
        permits[index] = hooks.reserve(operation, quantity=1, using=BUSINESS, at=AT)

    def held(index: int) -> hooks.Permit:
        permit = permits[index]
        assert permit is not None
        return permit

    def mark(index: int) -> None:
        with transaction.atomic(using=BUSINESS):
            hooks.mark(held(index).marker, using=BUSINESS)

    def settle(index: int) -> None:
        assert hooks.settle(held(index)) is hooks.Ended.SETTLED

    return [("reserve", reserve), ("mark", mark), ("settle", settle)]


def whole(pairs: int, entitlements: int) -> Phases:
    """Business transactions of which nothing is left but the quota and the marker."""
    from billing.commercial import hooks
    from tests.bench.commercial.world import AT, DIMENSION, TOOL, tenant
    from tests.commercial.make import BUSINESS

    run = uuid.uuid4().hex

    def work(index: int) -> None:
        operation = hooks.Operation(
            tenant_kind="organization",
            tenant_id=tenant(index % entitlements),
            tool=TOOL,
            dimension=DIMENSION,
            quantity_basis="events",
            identity=(run, str(index)),
        )
        with hooks.business_transaction(using=BUSINESS) as scope:
            scope.reserve(operation, quantity=1, at=AT)

    return [("whole", work)]


def locked(pairs: int, entitlements: int) -> Phases:
    """One UPDATE of a row per transaction, which every other transaction of that row waits for."""
    from outbox.raw import raw_cursor

    def update(index: int) -> None:
        with raw_cursor("billing") as cursor:
            cursor.execute(LOCKED, (index % entitlements,))

    return [("update", update)]


def plain(pairs: int, entitlements: int) -> Phases:
    """Two transactions of one row each: a row is inserted, and updated."""
    from outbox.raw import raw_cursor

    ids = [uuid.uuid4() for _ in range(pairs)]

    def execute(statement: str) -> Callable[[int], None]:
        def one(index: int) -> None:
            with raw_cursor("billing") as cursor:
                cursor.execute(statement, (ids[index],))

        return one

    return [("insert", execute(PLAIN[0])), ("update", execute(PLAIN[1]))]


WORK: dict[str, Callable[[int, int], Phases]] = {"hooks": hooked, "whole": whole, "locked": locked, "plain": plain}

if __name__ == "__main__":
    main()
