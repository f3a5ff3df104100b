"""Child: append a backlog of admissions, `run.created` and `wallet.reserved` of one run after the other, and commit.

`appending` is the time inside the transactions, without that of making the events.
"""

import argparse
import itertools
import time

import django

from tests.bench import children


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--bulk", type=int, default=1000, help="Events of one transaction.")
    chosen = parser.parse_args()
    events, bulk = chosen.events, chosen.bulk
    django.setup()
    from django.db import connections, transaction

    from outbox.append import append_many
    from tests.outbox.make import admission

    connections["default"].ensure_connection()
    children.wait_for_start()
    started, inside, used = time.perf_counter(), 0.0, 0.0
    backlog = (event for _ in range(events // 2) for event in admission())
    while batch := list(itertools.islice(backlog, bulk)):
        before, processor = time.perf_counter(), time.process_time()
        with transaction.atomic(using="default"):
            append_many(batch, using="default")
        inside += time.perf_counter() - before
        used += time.process_time() - processor
    children.answer(events=events, seconds=time.perf_counter() - started, appending=inside, cpu=used)


if __name__ == "__main__":
    main()
