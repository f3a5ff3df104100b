"""Leases between real processes: stopped past the lease, longer than the lease, and with a wrong clock."""

import signal
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from tests.crash.processes import Crew, ended, go_on, reached, stopped
from tests.crash.proof import drained, outcomes, prove_applied_once
from tests.ground.waiting import until
from tests.outbox.conftest import rows
from tests.outbox.make import admission
from tests.verify.tamper import tamper
from tests.verify.world import append


@pytest.mark.spec("O19", "O20")
@pytest.mark.trap("D1", "D2")
@pytest.mark.parametrize("step", ["claimed", "delivered"])
def test_a_worker_stopped_past_its_lease_changes_nothing_when_it_wakes_and_says_so(
    step: str, crew: Crew, tmp_path: Path
) -> None:
    append(*admission())
    sleeper = crew.dispatcher(CRASH_STOP=step, PROMETHEUS_MULTIPROC_DIR=str(tmp_path))
    stopped(sleeper)
    rescuer = crew.dispatcher()
    drained()
    ended(rescuer)
    settled = rows("SELECT * FROM outbox_deliveries ORDER BY event_id")
    sleeper.send_signal(signal.SIGCONT)
    sleeper.await_text("late_result_fenced")
    assert "2 fenced" in ended(sleeper)
    assert rows("SELECT * FROM outbox_deliveries ORDER BY event_id") == settled
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(tmp_path))  # type: ignore[no-untyped-call]  # prometheus_client does not type it
    labels = {"producer": "core", "destination": "core_operations"}
    assert registry.get_sample_value("outbox_fenced_total", labels) == 2
    assert outcomes() == {"lease_expired_unknown": 2, "acknowledged": 2}
    prove_applied_once(2)


@pytest.mark.spec("O19")
@pytest.mark.trap("D5")
def test_a_handler_that_takes_three_leases_keeps_its_lease_and_runs_once(crew: Crew) -> None:
    append(*admission())
    slow = crew.dispatcher(CRASH_SLOW="in_inbox:3.2")
    until(lambda: rows("SELECT count(*) FROM outbox_delivery_attempt_starts") == [(2,)])
    hungry = crew.dispatcher()
    drained()
    ended(hungry)
    ended(slow)
    assert outcomes() == {"acknowledged": 2}
    prove_applied_once(2)


@pytest.mark.trap("D6")
@pytest.mark.parametrize("offset", ["600", "-600"], ids=["ten minutes ahead", "ten minutes behind"])
def test_a_worker_with_a_wrong_clock_steals_no_lease_and_leaves_none_stuck(offset: str, crew: Crew) -> None:
    append(*admission())
    holder = crew.dispatcher(CRASH_PAUSE="claimed", OUTBOX_LEASE="60", OUTBOX_RENEW_EVERY="1")
    reached(holder, "claimed")
    append(*admission())
    wrong = crew.dispatcher(CRASH_CLOCK=offset, CRASH_PAUSE="claimed")
    reached(wrong, "claimed")
    held = "SELECT lease_expires_at - now() < interval '2 s', count(*) FROM outbox_deliveries GROUP BY 1 ORDER BY 1"
    assert rows(held) == [(False, 2), (True, 2)], "the database's clock decides when a lease ends"
    assert rows("SELECT max(lease_token) FROM outbox_deliveries") == [(1,)], "no lease was stolen"
    go_on(wrong)
    until(lambda: outcomes() == {"acknowledged": 2})
    assert rows("SELECT count(*) FROM outbox_deliveries WHERE status = 'leased'") == [(2,)]
    holder.kill()
    holder.wait()
    assert tamper("core", "UPDATE outbox_deliveries SET lease_expires_at = now() WHERE status = 'leased'") == 2
    drained()
    ended(wrong)
    prove_applied_once(4)
