"""Child: appends one event per transaction at a steady rate, and notes when each commit was done.

The note is taken after COMMIT and before the wake-up is sent, by this machine's clock, which is the server's as well.
"""

import argparse
import time

import django

from tests.bench import children


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True, help="Events per second.")
    parser.add_argument("--seconds", type=float, required=True)
    chosen = parser.parse_args()
    django.setup()
    from django.db import connections, transaction

    from outbox.append import append
    from tests.outbox.make import run_created

    connections["default"].ensure_connection()
    children.wait_for_start()
    committed: dict[str, float] = {}

    def note(event_id: str) -> None:
        committed[event_id] = time.time()

    start = time.monotonic()
    for index in range(int(chosen.rate * chosen.seconds)):
        time.sleep(max(0.0, start + index / chosen.rate - time.monotonic()))
        event = run_created()
        event_id = str(event.event_id)
        with transaction.atomic(using="default"):
            transaction.on_commit(lambda event_id=event_id: note(event_id), using="default")  # type: ignore[misc]  # the default binds the value of this turn
            append(event, using="default")
    children.answer(committed=committed)


if __name__ == "__main__":
    main()
