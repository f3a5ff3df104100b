"""kill -9 of a sweeping process at every step; two and more of them at once; and receivers that go on meanwhile."""

import subprocess
from collections.abc import Callable, Iterator

import pytest
from django.db import transaction

from billing.ledger.models import LedgerPosting
from billing.ledger.recompute import recompute
from config.verify.report import verify
from metering.consumption.aggregate import Outcome
from metering.consumption.models import ConsumptionLine
from metering.consumption.tasks import sweep as scheduled
from metering.otlp.fields import Kind
from metering.otlp.read_record import Row
from tests.billing.books import balances
from tests.consumption.make import (
    HOUR,
    LATER,
    WINDOW,
    ask_now,
    charges,
    dirty,
    learn,
    lines,
    llm,
    receive,
    sample,
    swept,
    window,
)
from tests.consumption.test_charging import ONE_CALL
from tests.crash.processes import Crew, Process, go_on, killed, reached
from tests.telemetry_charges.make import payer
from tests.upstream.threads import Stopped, in_threads, stopped_at
from tests.verify.tamper import administrator

pytestmark = [pytest.mark.usefixtures("database")]
SWEEP = ("-m", "tests.crash.worker", "consumption", "sweep", "--at", LATER.isoformat())
STEPS = {
    "consumption.window_held": (0, 0),
    "consumption.summed_up": (0, 0),
    "consumption.before_commit": (0, 0),
    "consumption.committed": (1, 0),
    "consumption.charges_taken": (1, 0),
    "telemetry_charges.before_commit": (1, 0),
    "telemetry_charges.committed": (1, 1),
    "consumption.charges_answered": (1, 1),
    "consumption.charges_settled": (1, 1),
}
"""Each step, and how many windows are summed up and charged when a process dies there."""


@pytest.fixture
def crew(database: None) -> Iterator[Crew]:
    """Processes on the databases of the tests."""
    made = Crew()
    yield made
    made.end()


def prove(account: str, calls: int) -> None:
    """Everything is summed up and charged exactly once."""
    ask_now()
    swept()
    assert (dirty(), [charge.state for charge in charges() if charge.state != "posted"]) == (0, [])
    assert sum(charge.input_tokens for charge in charges()) == 100 * calls
    assert balances(account)["revenue"] == calls * ONE_CALL
    assert recompute().differences == ()
    assert [tally.samples for _, tally in verify().found if tally.violations] == []


@pytest.mark.spec("T13")
@pytest.mark.trap("M2")
@pytest.mark.parametrize("step", STEPS)
def test_a_sweep_killed_at_any_step_loses_nothing_and_charges_nothing_twice(step: str, crew: Crew) -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm(), llm())
    killed(crew.start(SWEEP, CRASH_KILL=step))
    summed_up, posted = STEPS[step]
    assert (len(lines()), LedgerPosting.objects.filter(kind="charge").count()) == (summed_up, posted)
    prove(account, 2)
    receive(llm())
    prove(account, 3)


@pytest.mark.trap("M2")
@pytest.mark.parametrize("step", ["consumption.release_before_commit", "consumption.released"])
def test_a_release_that_is_killed_is_finished_by_the_next(step: str, crew: Crew) -> None:
    account = payer()
    receive(llm(), llm(WINDOW + HOUR))
    swept()
    learn(k101="org-1")
    killed(crew.start(SWEEP, CRASH_KILL=step))
    assert ConsumptionLine.objects.filter(organization_id=None).count() == (1 if step.endswith("released") else 2)
    prove(account, 2)


@pytest.mark.trap("D13")
def test_a_session_that_the_server_ends_while_a_window_is_summed_up_leaves_it_dirty(crew: Crew) -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm())
    worker = crew.start(SWEEP, CRASH_PAUSE="consumption.summed_up")
    reached(worker, "consumption.summed_up")
    with administrator("telemetry") as server:
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'telemetry_owner'"
            " AND datname = current_database() AND state = 'idle in transaction'"
        )
    go_on(worker)
    assert failed(worker)
    assert (dirty(), lines()) == (1, [])
    prove(account, 1)


def failed(process: Process) -> bool:
    """Whether the process ended with an error."""
    return process.wait(timeout=60) != 0


def test_a_window_that_another_holds_is_left_to_it_and_its_neighbours_are_not() -> None:
    learn(k101="org-1")
    receive(llm(), cluster="7")
    receive(llm(), cluster="8")
    with stopped_at("consumption.summed_up", swept) as first:
        found = swept().windows
        assert (found[Outcome.HELD], found[Outcome.AGGREGATED]) == (1, 1)
        first.go_on()
    assert (dirty(), len(lines())) == (0, 2)


@pytest.mark.spec("T13")
@pytest.mark.trap("D27")
@pytest.mark.parametrize("step", ["consumption.window_held", "consumption.summed_up", "consumption.before_commit"])
def test_an_event_that_arrives_while_its_window_is_summed_up_is_never_forgotten(step: str) -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm())
    with stopped_at(step, swept) as sweep:
        if step == "consumption.before_commit":
            # The receiver waits for the mark that the sweep has just cleared; both commit, one after the other.
            in_threads([lambda: receive(llm()), lambda: finished(sweep)])
        else:
            receive(llm())
            sweep.go_on()
    prove(account, 2)


def finished(stopped: Stopped) -> None:
    stopped.go_on()


def test_a_receiver_in_the_middle_of_its_transaction_keeps_its_window_dirty_and_nobody_waiting() -> None:
    learn(k101="org-1")
    receive(llm())
    with stopped_at("otlp.stored", lambda: in_transaction(llm())) as receiver:
        done = swept()
        assert done.windows[Outcome.AGGREGATED] == 1
        assert (dirty(), lines()[0].events) == (1, 1)
        receiver.go_on()
    swept()
    assert (dirty(), lines()[0].events, window().revision) == (0, 2, 2)


def in_transaction(event: tuple[Kind, Row]) -> None:
    """A receiver that has marked the window and has not committed yet when `otlp.stored` is reached."""
    with transaction.atomic(using="telemetry"):
        receive(event)


def sweeping() -> None:
    swept()


def arriving(number: int) -> Callable[[], None]:
    """A receiver with four events of two keys in three windows."""
    events = [llm(WINDOW + (number + part) % 3 * HOUR, manager_key_id=str(101 + part % 2)) for part in range(4)]
    return lambda: receive(*events)


@pytest.mark.trap("D17", "M4")
def test_many_sweeps_beside_many_receivers_count_and_charge_every_event_once() -> None:
    account = payer()
    learn(k101="org-1", k102="org-1")
    for _ in range(3):
        in_threads([*(arriving(number) for number in range(6)), *[sweeping] * 4])
    in_threads([sweeping] * 4)
    prove(account, 3 * 6 * 4)


@pytest.mark.trap("D27")
def test_a_proof_beside_sweeps_and_receivers_never_reports_what_is_in_flight() -> None:
    payer()
    learn(k101="org-1")
    found: list[object] = []

    def proving() -> None:
        for _ in range(3):
            found.extend(tally.samples for _, tally in verify().found if tally.violations)

    for _ in range(2):
        in_threads([*(arriving(number) for number in range(4)), *[sweeping] * 3, proving])
    learn(k102="org-1")
    in_threads([sweeping, sweeping, proving])
    assert found == []
    assert verify().totals["orphan_lines"] == 0


@pytest.mark.trap("D14", "D15")
def test_a_scheduled_sweep_that_runs_twice_or_later_is_harmless() -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm(), llm())
    in_threads([lambda: scheduled.apply().get()] * 4)
    prove(account, 2)


def test_the_command_sweeps_marks_again_and_issues_again(
    run_django: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm())
    receive(sample(organization_id="org-1"), mode="per_cluster", cluster="8")
    said = run_django("consumption", "sweep")
    assert said.stdout.strip() == "windows: 2 aggregated; lines released: 0; charges: 1 posted, 1 refused"
    where = ("--cluster", "7", "--from", WINDOW.isoformat(), "--to", (WINDOW + HOUR).isoformat())
    assert "1 windows" in run_django("consumption", "remark", *where).stdout
    assert dirty() == 1
    again = run_django("consumption", "sweep")
    assert again.stdout.strip() == "windows: 1 aggregated; lines released: 0; charges: none due"
    for wrong in (("reissue", "nothing"), ("remark", *where[:-1], "tomorrow"), ("remark", *where[:-1], "2026-03-04")):
        refused = run_django("consumption", *wrong)
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr
    assert balances(account)["revenue"] == ONE_CALL
