"""kill -9 and stops of PostgreSQL and Valkey under a working dispatcher."""

import re
import signal
from itertools import pairwise

import pytest

from tests.crash.processes import Crew, ended
from tests.crash.site import Site
from tests.ground.waiting import until


@pytest.mark.slow
@pytest.mark.trap("D13")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "a fast shutdown"])
def test_a_dispatcher_outlives_its_postgresql_and_goes_on(how: signal.Signals, site: Site, site_crew: Crew) -> None:
    before = site.done()
    site.append(150)
    worker = site_crew.dispatcher(OUTBOX_BATCH_SIZE="10")
    until(lambda: site.done() > before)
    site.kill_server("postgres", how)
    site.revive_server("postgres")
    site.drained()
    output = ended(worker)
    site.prove_applied_once()
    assert output.count("dispatch_waits") < 50, "it waits between its attempts to connect"


@pytest.mark.slow
@pytest.mark.trap("D13")
def test_a_dispatcher_backs_off_while_postgresql_is_away(site: Site, site_crew: Crew) -> None:
    worker = site_crew.dispatcher()
    site.kill_server("postgres", signal.SIGINT)
    until(lambda: worker.said().count("dispatch_waits") >= 6)
    pauses = [float(found) for found in re.findall(r'dispatch_waits.*?"seconds": ([0-9.]+)', worker.said())]
    assert all(later == min(10.0, 2 * earlier) for earlier, later in pairwise(pauses)), pauses
    site.revive_server("postgres")
    site.append(2)
    site.drained()
    ended(worker)
    site.prove_applied_once()


@pytest.mark.trap("D14")
def test_without_valkey_every_commit_stands_and_dispatch_goes_on(site: Site, site_crew: Crew) -> None:
    site.kill_server("valkey", signal.SIGKILL)
    before = site.done()
    site.append(5)
    worker = site_crew.dispatcher()
    until(lambda: site.done() == before + 10)
    site.revive_server("valkey")
    site.append(5)
    site.drained()
    ended(worker)
    site.prove_applied_once()
