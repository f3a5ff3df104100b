"""Child: append a backlog of admissions, `run.created` and `wallet.reserved` of one run after the other, and commit."""

import argparse
import time

import django

from tests.bench import children

BULK = 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, required=True)
    events = parser.parse_args().events
    django.setup()
    from django.db import connections, transaction

    import outbox.append
    from outbox.append import append_many
    from tests.outbox.make import admission

    outbox.append.nudge_after_commit = lambda *, using: None  # nobody is there to be woken
    connections["default"].ensure_connection()
    children.wait_for_start()
    started, left, inside = time.perf_counter(), events, 0.0
    while left > 0:
        count = min(BULK, left)
        batch = [event for _ in range(count // 2) for event in admission()]
        before = time.perf_counter()
        with transaction.atomic(using="default"):
            append_many(batch, using="default")
        inside += time.perf_counter() - before
        left -= count
    children.answer(events=events, seconds=time.perf_counter() - started, appending=inside)


if __name__ == "__main__":
    main()
