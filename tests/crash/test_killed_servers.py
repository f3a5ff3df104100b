"""kill -9 and stops of PostgreSQL and Valkey under a working dispatcher."""

import os
import re
import signal
from itertools import pairwise

import pytest

from tests.crash.processes import Crew, ended
from tests.crash.site import Site
from tests.ground.waiting import gone, until


@pytest.mark.slow
@pytest.mark.trap("D13")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "a fast shutdown"])
def test_a_dispatcher_outlives_its_postgresql_and_goes_on(how: signal.Signals, site: Site, site_crew: Crew) -> None:
    before = site.done()
    site.append(150)
    worker = site_crew.dispatcher(OUTBOX_BATCH_SIZE="10")
    until(lambda: site.done() > before)
    server = site.embedded.server_pids()["postgres"]
    os.kill(server, how)
    until(lambda: gone(server))
    assert site.embedded.revive() == ("postgres",)
    site.drained()
    output = ended(worker)
    site.prove_applied_once()
    assert output.count("dispatch_waits") < 50, "it waits between its attempts to connect"


@pytest.mark.slow
@pytest.mark.trap("D13")
def test_a_dispatcher_backs_off_while_postgresql_is_away(site: Site, site_crew: Crew) -> None:
    worker = site_crew.dispatcher()
    server = site.embedded.server_pids()["postgres"]
    os.kill(server, signal.SIGINT)
    until(lambda: gone(server))
    until(lambda: worker.said().count("dispatch_waits") >= 6)
    pauses = [float(found) for found in re.findall(r'dispatch_waits.*?"seconds": ([0-9.]+)', worker.said())]
    assert all(later == min(10.0, 2 * earlier) for earlier, later in pairwise(pauses)), pauses
    assert site.embedded.revive() == ("postgres",)
    site.append(2)
    site.drained()
    ended(worker)
    site.prove_applied_once()


@pytest.mark.trap("D14")
def test_without_valkey_every_commit_stands_and_dispatch_goes_on(site: Site, site_crew: Crew) -> None:
    server = site.embedded.server_pids()["valkey"]
    os.kill(server, signal.SIGKILL)
    until(lambda: gone(server))
    before = site.done()
    site.append(5)
    worker = site_crew.dispatcher()
    until(lambda: site.done() == before + 10)
    assert site.embedded.revive() == ("valkey",)
    site.append(5)
    site.drained()
    ended(worker)
    site.prove_applied_once()
