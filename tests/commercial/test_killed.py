"""kill -9 at every step: the sweep, or the repeated operation, finds what was left and ends it as the marker says."""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.db import connections, transaction

from billing.commercial import hooks
from billing.commercial import sweep as sweeping
from billing.commercial.hooks import Ended
from billing.commercial.sweep import Swept, sweep
from billing.commercial.tasks import sweep_business
from config.owners import owner_named, with_markers
from tests.commercial.conftest import swept_now
from tests.commercial.make import (
    AT,
    BUSINESS,
    Contract,
    markers,
    operation,
    rows,
    states,
    subscribe,
    usage,
    used_and_held,
)
from tests.commercial.notes import Interrupted, notes, store, write_note
from tests.conftest import ROOT
from tests.upstream.threads import in_threads
from tests.verify.tamper import tamper

pytestmark = [pytest.mark.usefixtures("business")]

CHILD = """
import os, signal, sys
import django
django.setup()
from outbox import steps
from tests.commercial.conftest import swept_now
from tests.commercial.make import Contract
from tests.commercial.notes import Interrupted, write_note
def die(step):
    if step == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
steps.hook = die
what, tenant = sys.argv[2:]
if what == "sweep":
    swept_now()
try:
    write_note(Contract(tenant, "", ""), "a", "text", request="r", fails=what == "rollback")
except Interrupted:
    pass
"""


def killed_at(step: str, what: str, contract: Contract) -> None:
    """Write note `a`, roll it back, or sweep, in a process that is killed with -9 at the step."""
    command = [sys.executable, "-c", CHILD, step, what, contract.tenant_id]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


STEPS = [
    pytest.param("commercial.reserved", "commit", False, id="reserved"),
    pytest.param("commercial.marked", "commit", False, id="marked"),
    pytest.param("commercial.before_commit", "commit", False, id="before the commit"),
    pytest.param("commercial.committed", "commit", True, id="committed"),
    pytest.param("commercial.rolled_back", "rollback", False, id="rolled back"),
    pytest.param("commercial.decided", "rollback", False, id="refused, not yet released"),
]


@pytest.mark.spec("C9")
@pytest.mark.trap("M8")
@pytest.mark.parametrize(("step", "what", "committed"), STEPS)
def test_the_sweep_ends_what_a_killed_process_left(step: str, what: str, committed: bool) -> None:
    contract = subscribe()
    killed_at(step, what, contract)
    assert (states(), used_and_held()) == ([("reserved", 1, None)], (0, 1))
    assert swept_now() == (Swept(settled=1) if committed else Swept(released=1))
    assert swept_now() == Swept()
    assert (usage(), used_and_held(), len(notes())) == ((1, (1, 0), 1) if committed else (0, (0, 0), 0))
    assert markers() == [("reservation", 1, "committed" if committed else "refused")]
    found = rows("SELECT outcome, business, generation FROM commercial_sweep_findings")
    assert found == [("settled" if committed else "released", BUSINESS, 1)]


@pytest.mark.spec("C2", "C9")
@pytest.mark.trap("M8")
@pytest.mark.parametrize(("step", "what", "committed"), STEPS)
def test_the_repeated_operation_goes_on_without_waiting_for_the_sweep(step: str, what: str, committed: bool) -> None:
    contract = subscribe(limit=1)
    killed_at(step, what, contract)
    if step == "commercial.decided":
        with pytest.raises(hooks.ReservationLost):
            write_note(contract, "a", "text", request="r")
    write_note(contract, "a", "again", request="r")
    assert swept_now() == Swept()
    assert (usage(), used_and_held(), notes()) == (1, (1, 0), {"a": "again"})


@pytest.mark.spec("C9")
@pytest.mark.parametrize(("step", "committed"), [("commercial.committed", True), ("commercial.reserved", False)])
def test_a_sweep_that_is_killed_is_finished_by_the_next_one(step: str, committed: bool) -> None:
    contract = subscribe()
    killed_at(step, "commit", contract)
    killed_at("commercial.sweep_decided", "sweep", contract)
    assert (states(), used_and_held()) == ([("reserved", 1, None)], (0, 1))
    assert swept_now() == (Swept(settled=1) if committed else Swept(released=1))
    assert (usage(), used_and_held()) == ((1, (1, 0)) if committed else (0, (0, 0)))


@pytest.mark.trap("M8")
@pytest.mark.parametrize("cancelled", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_work_that_is_cancelled_gives_its_quota_back(cancelled: type[BaseException]) -> None:
    contract = subscribe()
    with pytest.raises(cancelled), hooks.business_transaction(using=BUSINESS) as work:
        work.reserve(operation(contract), quantity=1, at=AT)
        store("a", "text")
        raise cancelled
    assert (usage(), used_and_held(), notes()) == (0, (0, 0), {})


def left(contract: Contract, number: int = 1) -> list[hooks.Permit]:
    """Reservations that nobody goes on with."""
    return [hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT) for _ in range(number)]


@pytest.mark.spec("C9")
def test_a_reservation_is_not_asked_about_before_its_time() -> None:
    left(subscribe())
    assert sweep(business=BUSINESS, held_for=timedelta(hours=1)) == Swept()
    assert used_and_held() == (0, 1)


@pytest.mark.spec("C9")
def test_sweeps_at_once_are_harmless() -> None:
    left(subscribe(limit=30), 30)
    swept = in_threads([swept_now] * 4)
    assert sum(one.failed + one.settled + one.live for one in swept) == 0
    assert (used_and_held(), {state for state, _, _ in states()}) == ((0, 0), {"released"})
    assert rows("SELECT count(*) FROM commercial_sweep_findings") == [(30,)]


@pytest.mark.spec("C9")
@pytest.mark.trap("D3")
def test_what_cannot_be_resolved_keeps_nothing_else_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *rest = left(subscribe(), 4)
    monkeypatch.setattr(sweeping, "PAGE", 1)
    with connections["billing"].cursor() as cursor:
        cursor.execute("SET lock_timeout = '20ms'")
    with transaction.atomic(using="billing.schema"):
        with connections["billing.schema"].cursor() as cursor:
            cursor.execute(
                "SELECT FROM commercial_runtime_reservations WHERE reservation_id = %s FOR UPDATE",
                [first.reservation_id],
            )
        assert swept_now() == Swept(released=len(rest), failed=1)
    assert swept_now() == Swept(released=1)


def test_a_business_database_that_is_away_stops_the_sweep_and_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    left(subscribe(), 2)
    connections[BUSINESS].close()
    monkeypatch.setitem(connections[BUSINESS].settings_dict, "PORT", 1)
    with pytest.raises(Exception, match="connection"):
        swept_now()
    monkeypatch.undo()
    connections[BUSINESS].close()
    assert used_and_held() == (0, 2)
    assert swept_now() == Swept(released=2)


def test_a_marker_that_contradicts_the_reservation_changes_nothing_and_is_told() -> None:
    (permit,) = left(subscribe())
    assert hooks.release(permit) is Ended.RELEASED
    assert tamper(BUSINESS, "UPDATE commercial_markers SET verdict = 'committed'") == 1
    for ask in (hooks.settle, hooks.release):
        with pytest.raises(hooks.Contradiction):
            ask(permit)
    assert (usage(), used_and_held(), states()) == (0, (0, 0), [("released", 1, "caller")])


def test_a_late_release_of_an_old_generation_does_not_touch_the_new_one() -> None:
    contract = subscribe()
    old = hooks.reserve(operation(contract, "a"), quantity=1, using=BUSINESS, at=AT)
    hooks.release(old)
    new = hooks.reserve(operation(contract, "a"), quantity=1, using=BUSINESS, at=AT)
    assert hooks.release(old) is Ended.RELEASED
    assert (new.generation, used_and_held()) == (2, (0, 1))
    with pytest.raises(hooks.ReservationLost), hooks.business_transaction(using=BUSINESS) as work:
        work.bind(old)
    assert used_and_held() == (0, 1)


def test_the_beat_sweeps_for_every_owner_with_markers_on_its_own_queue() -> None:
    left(subscribe(), 2)
    for owner in with_markers():
        entry = django_settings.CELERY_BEAT_SCHEDULE[f"sweep-commercial-{owner.name}"]
        assert entry["task"] == sweep_business.name
        assert entry["args"] == (owner.name,)
        assert entry["options"]["queue"] == owner_named(owner.name).queue
        sweep_business.apply(args=entry["args"], throw=True)
    assert used_and_held() == (0, 2), "they are too young"
    with pytest.raises(Interrupted):
        write_note(subscribe(), "a", "text", fails=True)
