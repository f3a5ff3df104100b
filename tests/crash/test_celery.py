"""Celery's part: nudges that arrive or get lost, beats that die or run twice, a broker that is killed (D14, D15)."""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings

from tests.crash.processes import Crew, Process, ended, go_on, reached
from tests.crash.site import CELERY_WORKER, Site
from tests.ground.system import descendants
from tests.ground.waiting import PATIENCE_SECONDS, until

SEND = "from outbox.tasks import dispatch\nfor _ in range(5): dispatch.apply_async(('core',), queue='owner.core')"
"""The same order five times, as a broker that repeats itself would deliver it."""


@pytest.fixture(scope="module")
def celery(site: Site) -> Iterator[Process]:
    """One worker for the tests of this file, with two processes."""
    crew = site.crew()
    worker = crew.start(CELERY_WORKER, OUTBOX_BEAT_EVERY="600")
    worker.await_text(" ready.")
    yield worker
    crew.end()


def beat(crew: Crew, site: Site, name: str) -> Process:
    schedule = str(site.state / f"beat-{name}")
    return crew.start(
        ("-m", "celery", "-A", "config.celery", "beat", "--schedule", schedule, "--pidfile="), OUTBOX_BEAT_EVERY="0.5"
    )


@pytest.mark.trap("D15")
def test_the_schedule_counts_seconds_and_knows_no_daylight_saving() -> None:
    assert settings.CELERY_TIMEZONE == "UTC"
    assert all(isinstance(entry["schedule"], timedelta) for entry in settings.CELERY_BEAT_SCHEDULE.values())


@pytest.mark.slow
@pytest.mark.spec("O1")
def test_a_nudge_delivers_without_any_beat(site: Site, celery: Process) -> None:
    site.append(3)
    site.drained()
    site.prove_applied_once()


@pytest.mark.slow
@pytest.mark.trap("D14", "D15")
def test_lost_nudges_are_found_by_the_beat_and_two_beats_are_harmless(
    site: Site, celery: Process, site_crew: Crew
) -> None:
    before = site.done()
    site.append(3, tell=False)
    assert site.done() == before, "nobody was told"
    first, second = beat(site_crew, site, "one"), beat(site_crew, site, "two")
    site.drained()
    site.prove_applied_once()
    first.kill()
    first.wait()
    site.append(3, tell=False)
    site.drained()
    second.kill()
    second.wait()
    site.append(3)
    site.drained()
    third = beat(site_crew, site, "two")
    site.append(3, tell=False)
    site.drained()
    third.kill()
    site.prove_applied_once()


@pytest.mark.slow
@pytest.mark.trap("D14")
def test_an_order_delivered_five_times_while_the_first_still_works_has_one_effect(site: Site, celery: Process) -> None:
    site.append(20, tell=False)
    site.manage("shell", "--no-imports", "-c", SEND)
    site.drained()
    site.prove_applied_once()


@pytest.mark.slow
@pytest.mark.trap("D14")
def test_a_killed_broker_comes_back_and_its_worker_with_it(site: Site, celery: Process, site_crew: Crew) -> None:
    beat(site_crew, site, "three")
    site.kill_server("valkey", signal.SIGKILL)
    site.append(3)
    site.revive_server("valkey")
    site.drained()
    site.prove_applied_once()


@pytest.mark.slow
@pytest.mark.spec("O19")
def test_a_pool_process_killed_in_its_work_is_replaced_and_its_work_recovered(
    site: Site, celery: Process, site_crew: Crew
) -> None:
    beat(site_crew, site, "four")
    site.append(20, tell=False)
    for pid in descendants(celery.pid):
        os.kill(pid, signal.SIGKILL)
    site.append(20)
    site.drained()
    site.prove_applied_once()


@pytest.mark.slow
@pytest.mark.trap("D14")
def test_sigterm_under_load_twenty_times_loses_nothing_and_repeats_nothing(site: Site, site_crew: Crew) -> None:
    before = site.done()
    site.append(200, tell=False)
    worker = site_crew.dispatcher(OUTBOX_BATCH_SIZE="15", CRASH_PAUSE="claimed", CRASH_ROUNDS="20")
    for number in range(1, 21):
        reached(worker, "claimed", times=number)
        worker.send_signal(signal.SIGTERM)
        go_on(worker)
    assert worker.wait(PATIENCE_SECONDS) == 0, worker.said()
    assert site.rows("SELECT count(*) FROM outbox_deliveries WHERE status = 'leased'") == [(0,)], "nothing stays leased"
    rest = site_crew.dispatcher()
    until(lambda: site.done() == before + 400)
    ended(rest)
    site.prove_applied_once()
    codes = site.rows(
        "SELECT DISTINCT normalized_error_code FROM outbox_delivery_attempt_finishes WHERE outcome = 'retryable'"
    )
    assert codes == [("worker_draining",)]
