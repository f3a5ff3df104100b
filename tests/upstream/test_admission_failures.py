import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connections, transaction

from billing.finalization import sweep as sweeping
from billing.finalization.models import BillingFinalizationFence, BillingReservation
from billing.finalization.sweep import Swept, sweep_admissions
from billing.ledger.models import LedgerHold
from billing.ledger.recompute import recompute
from outbox import steps
from outbox.append import Event, append
from outbox.contracts.contract import ContentReference
from outbox.models import OutboxEvent
from tests.billing.books import balances, funded_account, open_holds, standard_prices
from tests.conftest import ROOT
from tests.upstream.requests import AT, COST, request
from upstream.admission.admit import admit_run, admit_runs
from upstream.admission.contracts import RunAdmissionRequest, RunCreated, UnadmittedOperation
from upstream.admission.models import AdmissionOutcome, Run, StoredRefusal
from upstream.admission.outcomes import Admitted, Refused, Undecided
from upstream.admission.refuse import refuse_operations

pytestmark = [pytest.mark.usefixtures("database")]
NOW = timedelta(0)


@pytest.fixture
def failing() -> Iterator[Callable[[str], None]]:
    """Make a step raise, so that the transaction it is in really aborts."""

    def at(step: str) -> None:
        def hook(reached: str) -> None:
            if reached == step:
                raise ConnectionError(step)

        steps.hook = hook

    yield at
    steps.hook = None


def test_core_failing_stores_a_refusal_and_then_releases_the_hold(failing: Callable[[str], None]) -> None:
    standard_prices()
    account = funded_account()
    wanted = request(account)
    failing("admission.run_before_commit")
    assert admit_run(wanted, at=AT) == Refused(operation_id=wanted.operation_id, reason="core_failed")
    assert (Run.objects.count(), OutboxEvent.objects.using("default").count()) == (0, 0)
    reservation = BillingReservation.objects.get()
    assert reservation.admission_refusal_digest == StoredRefusal.objects.get().digest
    assert (reservation.state, open_holds(account), balances(account)["held"]) == ("released", [], 0)
    fence = BillingFinalizationFence.objects.get()
    assert (fence.coordination_state, fence.active_work_id, fence.fence_revision) == ("unadmitted", None, 2)
    assert recompute().differences == ()


def test_one_run_that_core_refuses_does_not_cost_its_neighbours() -> None:
    standard_prices()
    account = funded_account()
    batch = [request(account) for _ in range(5)]
    poison = batch[2]
    with transaction.atomic(using="default"):
        append(
            Event(
                event_type="run.created@2.0", event_schema_version="2.0", aggregate_id=poison.run_id,
                aggregate_revision=1, tenant_kind="organization", tenant_id="org-1", workspace_id="w",
                correlation_id="c", operation_id="somebody-else", occurred_at=AT,
                payload=RunCreated(
                    run_id=poison.run_id, billing_account_id="a", billing_reservation_id="r",
                    run_admission_manifest=ContentReference(ref="m", schema_version="1", digest="0" * 64),
                ),
            ),
            using="default",
        )  # fmt: skip
    answers = admit_runs(batch, at=AT)
    assert answers[2] == Refused(operation_id=poison.operation_id, reason="core_failed")
    assert [type(answer) for answer in answers[:2] + answers[3:]] == [Admitted] * 4
    assert balances(account)["held"] == 4 * COST


def test_core_that_can_store_nothing_leaves_the_operation_undecided_and_a_repeat_admits_it() -> None:
    standard_prices()
    wanted = request(funded_account())
    with connections["default"].cursor() as cursor:
        cursor.execute("SET lock_timeout = '20ms'")
    with transaction.atomic(using="default.schema"):
        with connections["default.schema"].cursor() as cursor:
            cursor.execute("LOCK TABLE admission_outcomes IN SHARE ROW EXCLUSIVE MODE")
        assert admit_run(wanted, at=AT) == Undecided(operation_id=wanted.operation_id)
    assert BillingReservation.objects.get().state == "open"
    assert isinstance(admit_run(wanted, at=AT), Admitted)
    assert BillingReservation.objects.get().confirmed_at is not None


def test_billing_that_does_not_hear_the_end_is_told_by_the_sweep(failing: Callable[[str], None]) -> None:
    standard_prices()
    account = funded_account()
    failing("admission.confirm_before_commit")
    assert isinstance(admit_run(request(account), at=AT), Admitted)
    failing("admission.run_before_commit")
    refused = request(account)
    steps_hook = steps.hook

    def both(step: str) -> None:
        if step == "admission.release_before_commit":
            raise ConnectionError(step)
        if steps_hook:
            steps_hook(step)

    steps.hook = both
    assert isinstance(admit_run(refused, at=AT), Refused)
    steps.hook = None
    assert [row.confirmed_at for row in BillingReservation.objects.filter(state="open")] == [None, None]
    assert sweep_admissions(unconfirmed_for=NOW) == Swept(confirmed=1, released=1, conflicting=0)
    assert sweep_admissions(unconfirmed_for=NOW) == Swept(confirmed=0, released=0, conflicting=0)
    assert open_holds(account) == [COST]
    assert StoredRefusal.objects.get().reason == "core_failed"


CHILD = """
import os, signal, sys
import django
django.setup()
from datetime import timedelta
from billing.finalization.sweep import sweep_admissions
from outbox import steps
from upstream.admission.admit import admit_run
from upstream.admission.contracts import RunAdmissionRequest
from tests.upstream.requests import AT
def die(step):
    if step == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
steps.hook = die
if sys.argv[2] == "sweep":
    sweep_admissions(unconfirmed_for=timedelta(0))
else:
    admit_run(RunAdmissionRequest.parse(sys.argv[2].encode()), at=AT)
"""


def killed_at(step: str, what: RunAdmissionRequest | str) -> None:
    """Run it in a process that is killed with -9 at the step."""
    argument = what if isinstance(what, str) else what.canonical().decode()
    result = subprocess.run([sys.executable, "-c", CHILD, step, argument], cwd=ROOT, env=dict(os.environ), check=False)
    assert result.returncode == -signal.SIGKILL


STEPS = {
    "admission.before_hold": "nothing",
    "admission.hold_before_commit": "nothing",
    "admission.held": "hold",
    "admission.run_before_commit": "hold",
    "admission.decided": "run",
    "admission.confirm_before_commit": "run",
}


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_between_any_two_steps_is_resolved_by_the_sweep(step: str) -> None:
    standard_prices()
    account = funded_account()
    wanted = request(account)
    killed_at(step, wanted)
    left = STEPS[step]
    assert (LedgerHold.objects.count(), Run.objects.count()) == {"nothing": (0, 0), "hold": (1, 0), "run": (1, 1)}[left]
    swept = {"nothing": Swept(0, 0, 0), "hold": Swept(0, 1, 0), "run": Swept(1, 0, 0)}[left]
    assert sweep_admissions(unconfirmed_for=NOW) == swept
    assert open_holds(account) == ([COST] if left == "run" else [])
    assert recompute().differences == ()
    repeated = admit_run(wanted, at=AT)
    if left == "hold":
        assert repeated == Refused(operation_id=wanted.operation_id, reason="admission_abandoned")
    else:
        assert isinstance(repeated, Admitted)


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_between_any_two_steps_is_resolved_by_repeating_the_operation(step: str) -> None:
    standard_prices()
    account = funded_account()
    wanted = request(account)
    killed_at(step, wanted)
    assert isinstance(admit_run(wanted, at=AT), Admitted)
    assert sweep_admissions(unconfirmed_for=NOW).released == 0
    assert open_holds(account) == [COST]
    assert BillingReservation.objects.get().confirmed_at is not None


@pytest.mark.parametrize("step", ["admission.sweep_asked", "admission.release_before_commit"])
def test_a_sweep_that_is_killed_is_finished_by_the_next_one(step: str) -> None:
    standard_prices()
    account = funded_account()
    wanted = request(account)
    killed_at("admission.held", wanted)
    killed_at(step, "sweep")
    assert AdmissionOutcome.objects.get().state == "refused"
    assert open_holds(account) == [COST]
    assert sweep_admissions(unconfirmed_for=NOW) == Swept(confirmed=0, released=1, conflicting=0)
    assert open_holds(account) == []


def test_a_hold_is_not_swept_before_its_time() -> None:
    standard_prices()
    killed_at("admission.held", request(funded_account()))
    assert sweep_admissions(unconfirmed_for=timedelta(hours=1)) == Swept(confirmed=0, released=0, conflicting=0)


@pytest.mark.trap("D3")
def test_holds_that_cannot_be_resolved_do_not_keep_later_ones_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    standard_prices()
    account = funded_account()
    for position in range(3):
        wanted = request(account)
        if position < 2:
            foreign = UnadmittedOperation(operation_id=wanted.operation_id, request_sha256=uuid.uuid4().hex * 2)
            killed_at("admission.held", wanted)
            refuse_operations([foreign], reason="admission_abandoned", at=AT)
        else:
            killed_at("admission.held", wanted)
    monkeypatch.setattr(sweeping, "PAGE", 1)
    assert sweep_admissions(unconfirmed_for=NOW) == Swept(confirmed=0, released=1, conflicting=2)
    assert open_holds(account) == [COST, COST]


def test_the_sweep_command_says_what_it_did(
    run_django: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    standard_prices()
    killed_at("admission.held", request(funded_account()))
    result = run_django("sweep_admissions", "--unconfirmed-for", "0")
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "confirmed 0, released 1, conflicting 0")
