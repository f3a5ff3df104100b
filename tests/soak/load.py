"""Admit runs until SIGTERM, whatever happens to the servers: `python -m tests.soak.load SEED`."""

import os
import random
import signal
import sys
import threading
from datetime import UTC, datetime
from types import FrameType

MAX_RUNS = 20
"""Runs in one admission."""
MAX_PAUSE_SECONDS = 0.1
"""Leaves the dispatchers some of the machine; the load is bursts, not a flood."""


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    import psycopg
    from django.db import Error, connections

    from tests.billing.books import funded_account, standard_prices
    from tests.upstream.requests import request
    from upstream.admission.admit import admit_runs

    chance, stop, admitted = random.Random(sys.argv[1]), threading.Event(), 0

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, ask_to_stop)
    account = None
    while not stop.wait(chance.random() * MAX_PAUSE_SECONDS):
        try:
            if account is None:
                standard_prices()
                account = funded_account(10**18)
            runs = [request(account) for _ in range(chance.randint(1, MAX_RUNS))]
            answers = admit_runs(runs, at=datetime.now(UTC))
            if not admitted:
                print("the load is on", flush=True)
            admitted += len(answers)
        except (Error, psycopg.Error, OSError) as error:
            print(f"load waits: {type(error).__name__}", flush=True)
            connections.close_all()
    print(f"{admitted} runs answered", flush=True)


if __name__ == "__main__":
    main()
