"""The soak: admissions go on while processes and servers are killed at random; at the end everything is proven.

`make soak MINUTES=10` runs it; `SOAK_SEED` repeats the decisions of an earlier run (not its races).
"""

import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.crash.processes import Crew, Process, drains_on_sigterm, ended, killed
from tests.crash.site import Site
from tests.ground.conftest import open_directory
from tests.ground.waiting import until

MINUTES = float(os.environ.get("SOAK_MINUTES") or 0)
LONGEST_PEACE_SECONDS = 2.0
CHANCES = {"dispatcher": 80, "load": 8, "postgres": 6, "valkey": 6}
"""Out of a hundred kills, how many hit what."""


@pytest.fixture
def own_site() -> Iterator[Site]:
    """Servers that the soak may kill."""
    state = open_directory()
    made = Site(state)
    made.migrate()
    yield made
    made.embedded.stop()
    shutil.rmtree(state, ignore_errors=True)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.skipif(not MINUTES, reason="SOAK_MINUTES is not set; `make soak MINUTES=10` sets it")
def test_whatever_is_killed_under_load_nothing_is_lost_and_nothing_is_applied_twice(own_site: Site) -> None:
    seed = os.environ.get("SOAK_SEED") or str(random.SystemRandom().randrange(10**9))
    print(f"\nSOAK_SEED={seed}")
    crew = own_site.crew()
    try:
        soak = Soak(own_site, crew, random.Random(seed))
        until(soak.is_working, patience=180)
        kills = soak.run(until_time=time.monotonic() + 60 * MINUTES)
    finally:
        crew.end()
    print(f"killed: {dict(kills)}")
    survivors = own_site.crew()
    try:
        worker = survivors.dispatcher()
        until(lambda: own_site.rows(OPEN) == [(0,)], patience=120 + 60 * MINUTES)
        ended(worker)
    finally:
        survivors.end()
    own_site.manage("sweep_admissions", "--unconfirmed-for", "0")
    totals = own_site.prove_applied_once()
    print(f"proven: {json.dumps(totals)}")
    assert totals["runs"] * 2 == totals["events"] > 0
    assert totals["unconfirmed_reservations"] == 0
    assert kills["dispatcher"]


OPEN = "SELECT count(*) FROM outbox_deliveries WHERE status IN ('pending', 'leased')"


def loads(process: Process) -> bool:
    """Whether this load has admitted runs, or has ended."""
    return "the load is on" in process.said() or process.poll() is not None


class Soak:
    """Two dispatchers and one load, replaced whenever they are killed, and servers revived."""

    def __init__(self, site: Site, crew: Crew, chance: random.Random) -> None:
        self.site, self.crew, self.chance = site, crew, chance
        self.dispatchers = [self._dispatcher() for _ in range(2)]
        self.load = self._load()

    def _dispatcher(self) -> Process:
        return self.crew.dispatcher(OUTBOX_BATCH_SIZE=str(self.chance.choice((1, 20, 500))))

    def _load(self) -> Process:
        return self.crew.start(("-m", "tests.soak.load", str(self.chance.random())))

    def run(self, *, until_time: float) -> Counter[str]:
        """Kill until the time is over; how often each was killed."""
        kills: Counter[str] = Counter()
        while time.monotonic() < until_time:
            threading.Event().wait(self.chance.random() * LONGEST_PEACE_SECONDS)  # the soak lives in real time
            (what,) = self.chance.choices(list(CHANCES), weights=list(CHANCES.values()))
            if self._kill(what):
                kills[what] += 1
        self.load.send_signal(signal.SIGTERM)
        self.load.wait(60)
        return kills

    def is_working(self) -> bool:
        """Whether everybody works: the load admits, and the dispatchers have come to their loop."""
        return loads(self.load) and all(drains_on_sigterm(process) for process in self.dispatchers)

    def _kill(self, what: str) -> bool:
        """Kill what works; False if it is only just starting, which would soak nothing but the starting."""
        if what == "dispatcher":
            place = self.chance.randrange(len(self.dispatchers))
            if not drains_on_sigterm(self.dispatchers[place]):
                return False
            self._end(self.dispatchers[place])
            self.dispatchers[place] = self._dispatcher()
        elif what == "load":
            if not loads(self.load):
                return False
            self._end(self.load)
            self.load = self._load()
        else:
            self.site.kill_server(what, signal.SIGKILL)
            self.site.revive_server(what)
        return True

    def _end(self, process: Process) -> None:
        assert process.poll() is None, "it ended by itself"
        process.kill()
        killed(process)
