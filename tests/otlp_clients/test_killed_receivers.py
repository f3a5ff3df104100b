"""Receivers that are killed while they work: every event that was sent is stored, and stored once."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.crash.site import Site
from tests.otlp_clients.receiver import Receiver
from tests.otlp_clients.sender import batches, send

MINUTES = float(os.environ.get("SOAK_MINUTES") or 0)
LONG = 5.0
"""Minutes of soak from which the long form runs."""
TALLIED = """
SELECT sum(stored)::int, sum(accepted - duplicates)::int, sum(conflicts)::int FROM telemetry_tallies
 WHERE cluster_id = %s
"""
MARKED = "SELECT count(*) FROM consumption_windows_dirty WHERE cluster_id = %s AND marked_generation > 0"

pytestmark = [pytest.mark.spec("T6"), pytest.mark.trap("T4")]


@contextmanager
def killing(receiver: Receiver, *, every: float) -> Iterator[list[int]]:
    """kill -9 of one process after the other, `every` so many seconds; the list says which."""
    killed: list[int] = []
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(every):
            killed.append(receiver.kill_one(len(killed)))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        ended.set()
        killer.join()


def prove(site: Site, receiver: Receiver, *, events: int, batch: int, every: float, least: int) -> None:
    """Send while processes are killed; then the store holds exactly what was sent, and counted it once."""
    cluster = receiver.cluster()
    bodies = batches(events, size=batch, prefix=f"killed-{cluster.number}")
    with killing(receiver, every=every) as killed:
        happened = send(bodies, url=receiver.url, token=cluster.token)
    print(f"killed {len(killed)} processes; {dict(happened)}")
    assert len(killed) == len(set(killed)) >= least
    assert happened["200"] == len(bodies)
    assert receiver.stored(cluster) == (events, events)
    number = str(cluster.number)
    assert site.rows(TALLIED, number, owner="telemetry") == [(events, events, 0)]
    assert site.rows(MARKED, number, owner="telemetry") == [(2,)]


def test_five_thousand_events_outlive_the_processes_that_store_them(site: Site, receiver: Receiver) -> None:
    prove(site, receiver, events=5_000, batch=10, every=0.5, least=3)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.skipif(MINUTES < LONG, reason="`make soak` runs it")
def test_a_hundred_thousand_events_outlive_a_kill_every_second(site: Site, receiver: Receiver) -> None:
    prove(site, receiver, events=100_000, batch=50, every=1.0, least=10)
