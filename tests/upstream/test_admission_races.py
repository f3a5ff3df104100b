from datetime import timedelta
from functools import partial
from itertools import permutations

import pytest

from billing.finalization.models import BillingReservation
from billing.finalization.sweep import Swept, sweep_admissions
from billing.ledger.recompute import recompute
from outbox.models import OutboxEvent
from tests.billing.books import balances, funded_account, open_holds, standard_prices
from tests.upstream.requests import AT, COST, request
from tests.upstream.threads import in_threads, stopped_at, wait_until_somebody_waits_for_a_lock
from upstream.admission.admit import admit_run, admit_runs
from upstream.admission.models import AdmissionOutcome, Run
from upstream.admission.outcomes import Admitted, Conflicting, Refused

pytestmark = [pytest.mark.usefixtures("database")]
NOW = timedelta(0)


@pytest.mark.trap("M9")
def test_another_body_conflicts_while_the_first_waits_between_hold_and_run() -> None:
    standard_prices()
    account = funded_account()
    first = request(account)
    with stopped_at("admission.held", lambda: admit_run(first, at=AT)) as stopped:
        other = request(account, operation=first.operation_id, input_tokens=7)
        assert admit_run(other, at=AT) == Conflicting(operation_id=first.operation_id)
        assert isinstance(stopped.go_on(), Admitted)
    assert open_holds(account) == [COST]


@pytest.mark.trap("M9")
def test_another_body_conflicts_while_the_first_is_inside_its_billing_transaction() -> None:
    standard_prices()
    first = request(funded_account())
    other = request(funded_account(), operation=first.operation_id)
    with stopped_at("admission.hold_before_commit", lambda: admit_run(first, at=AT)) as stopped:
        answers: list[object] = []

        def second() -> None:
            answers.append(admit_run(other, at=AT))

        def first_goes_on() -> None:
            wait_until_somebody_waits_for_a_lock("billing.schema")
            answers.append(stopped.go_on())

        in_threads([second, first_goes_on])
    assert sorted(type(answer).__name__ for answer in answers) == ["Admitted", "Conflicting"]
    assert Run.objects.get().billing_account_id == first.billing_account_id
    assert open_holds(other.billing_account_id) == []


def test_the_same_request_eight_times_at_once_is_one_run() -> None:
    standard_prices()
    account = funded_account()
    wanted = request(account)
    answers = in_threads([lambda: admit_run(wanted, at=AT)] * 8)
    assert all(isinstance(answer, Admitted) for answer in answers)
    assert len(set(answers)) == 1
    assert (Run.objects.count(), open_holds(account)) == (1, [COST])
    assert OutboxEvent.objects.using("default").count() == 2


@pytest.mark.trap("M7")
def test_twenty_at_once_against_funds_for_ten_are_exactly_ten() -> None:
    standard_prices()
    account = funded_account(10 * COST)
    answers = in_threads([partial(admit_run, request(account), at=AT) for _ in range(20)])
    assert sum(isinstance(answer, Admitted) for answer in answers) == 10
    refused = {answer.reason for answer in answers if isinstance(answer, Refused)}
    assert refused == {"insufficient_funds"}
    assert balances(account) == {"wallet": 0, "held": 10 * COST, "funding": -10 * COST, "revenue": 0}


@pytest.mark.trap("D17")
def test_batches_over_the_same_accounts_in_every_order_never_deadlock() -> None:
    standard_prices()
    accounts = [funded_account() for _ in range(3)]
    batches = [[request(account) for account in order for _ in range(4)] for order in permutations(accounts)]
    sweeps = [partial(sweep_admissions, unconfirmed_for=timedelta(hours=1))] * 2
    answers: list[object] = in_threads([*(partial(admit_runs, batch, at=AT) for batch in batches), *sweeps])
    admitted = [answer for batch in answers if isinstance(batch, list) for answer in batch]
    assert len(admitted) == 72
    assert all(isinstance(answer, Admitted) for answer in admitted)
    assert recompute().differences == ()


def test_a_sweep_between_hold_and_run_refuses_and_the_late_commit_of_the_run_fails() -> None:
    standard_prices()
    account = funded_account()
    wanted = request(account)
    with stopped_at("admission.held", lambda: admit_run(wanted, at=AT)) as stopped:
        assert sweep_admissions(unconfirmed_for=NOW) == Swept(confirmed=0, released=1, conflicting=0)
        late = stopped.go_on()
    assert late == Refused(operation_id=wanted.operation_id, reason="admission_abandoned")
    assert isinstance(late, Refused)
    assert late.permanent
    assert (Run.objects.count(), OutboxEvent.objects.using("default").count(), open_holds(account)) == (0, 0, [])
    assert admit_run(wanted, at=AT) == late
    assert recompute().differences == ()


def test_a_sweep_waits_for_the_run_that_is_being_committed_and_confirms_it() -> None:
    standard_prices()
    account = funded_account()
    wanted = request(account)
    with stopped_at("admission.run_before_commit", lambda: admit_run(wanted, at=AT)) as stopped:
        answers: dict[str, object] = {}

        def sweep() -> None:
            answers["sweep"] = sweep_admissions(unconfirmed_for=NOW)

        def commit() -> None:
            wait_until_somebody_waits_for_a_lock("default.schema")
            answers["run"] = stopped.go_on()

        in_threads([sweep, commit])
    assert answers["sweep"] == Swept(confirmed=1, released=0, conflicting=0)
    assert isinstance(answers["run"], Admitted)
    assert BillingReservation.objects.get().confirmed_at is not None
    assert AdmissionOutcome.objects.get().state == "admitted"


def test_two_sweeps_at_once_are_harmless() -> None:
    standard_prices()
    account = funded_account()
    with stopped_at("admission.held", lambda: admit_runs([request(account) for _ in range(20)], at=AT)) as stopped:
        swept = in_threads([lambda: sweep_admissions(unconfirmed_for=NOW)] * 3)
        late = stopped.go_on()
    assert all(one.conflicting == 0 and one.confirmed == 0 for one in swept)
    assert isinstance(late, list)
    assert all(isinstance(answer, Refused) for answer in late)
    assert balances(account)["held"] == 0
    assert recompute().differences == ()
