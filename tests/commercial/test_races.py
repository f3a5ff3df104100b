"""Many sessions at once on one entitlement: exactly the limit, one effect each, never below zero, never a deadlock."""

import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction

from billing.commercial import hooks
from billing.commercial.hooks import Ended, Operation, Permit, PermitState
from billing.commercial.subscriptions import end_subscription
from tests.commercial.conftest import swept_now
from tests.commercial.make import AT, BUSINESS, markers, operation, rows, states, subscribe, usage, used_and_held
from tests.commercial.notes import Interrupted, notes, write_note
from tests.upstream.threads import in_threads, stopped_at, wait_until_somebody_waits_for_a_lock

pytestmark = [pytest.mark.usefixtures("business")]


def reserve(wanted: Operation, quantity: int = 1) -> Permit | hooks.CommercialError:
    """The permit, or why there is none."""
    try:
        return hooks.reserve(wanted, quantity=quantity, using=BUSINESS, at=AT)
    except hooks.CommercialError as refused:
        return refused


@pytest.mark.spec("C1")
@pytest.mark.trap("M7")
@pytest.mark.slow
def test_fifty_threads_on_a_quota_of_ten_are_exactly_ten_twenty_times() -> None:
    for round_number in range(20):
        contract = subscribe(limit=10, tenant=f"org:round-{round_number}")
        answers = in_threads([partial(reserve, operation(contract)) for _ in range(50)])
        assert sum(isinstance(answer, Permit) for answer in answers) == 10
        refused = [answer for answer in answers if isinstance(answer, hooks.CommercialError)]
        assert {type(answer) for answer in refused} == {hooks.QuotaExceeded}
    assert used_and_held() == (0, 200)


@pytest.mark.spec("C1")
@pytest.mark.trap("M7")
def test_whole_business_transactions_at_once_are_as_many_as_the_quota_allows() -> None:
    contract = subscribe(limit=5)

    def one(number: int) -> str:
        try:
            write_note(contract, f"note-{number}", "text", fails=number % 5 == 0)
        except (hooks.QuotaExceeded, Interrupted) as ended:
            return type(ended).__name__
        return "written"

    answers = in_threads([partial(one, number) for number in range(20)])
    assert answers.count("written") == len(notes()) == usage() <= 5
    assert used_and_held() == (usage(), 0)
    rest = [write_note(contract, f"late-{number}", "text") for number in range(5 - usage())]
    assert len(rest) + answers.count("written") == usage() == 5
    with pytest.raises(hooks.QuotaExceeded):
        write_note(contract, "one more", "text")


@pytest.mark.spec("C2")
def test_the_same_operation_twenty_times_at_once_is_one_reservation() -> None:
    contract = subscribe()
    answers = in_threads([partial(reserve, operation(contract, "a"))] * 20)
    assert len(set(answers)) == 1
    assert (states(), used_and_held()) == ([("reserved", 1, None)], (0, 1))


@pytest.mark.spec("C2")
def test_a_released_operation_reopened_twenty_times_at_once_is_one_generation() -> None:
    contract = subscribe()
    hooks.release(hooks.reserve(operation(contract, "a"), quantity=1, using=BUSINESS, at=AT))
    answers = in_threads([partial(reserve, operation(contract, "a"))] * 20)
    assert {answer.generation for answer in answers if isinstance(answer, Permit)} == {2}
    assert (states(), used_and_held()) == ([("reserved", 2, None)], (0, 1))


@pytest.mark.trap("M9")
def test_another_quantity_is_a_conflict_also_while_the_first_is_being_decided() -> None:
    contract = subscribe(limit=100)
    answers = in_threads([partial(reserve, operation(contract, "a"), quantity) for quantity in range(1, 11)])
    assert sum(isinstance(answer, Permit) for answer in answers) == 1
    assert sum(isinstance(answer, hooks.OperationConflict) for answer in answers) == 9
    (winner,) = [answer for answer in answers if isinstance(answer, Permit)]
    assert used_and_held() == (0, winner.quantity)


@pytest.mark.trap("M9")
def test_another_quantity_is_a_conflict_while_the_first_is_in_its_business_transaction() -> None:
    contract = subscribe(limit=100)
    with stopped_at("commercial.marked", lambda: write_note(contract, "a", "text", request="r")) as stopped:
        assert isinstance(reserve(operation(contract, "a", "r"), 2), hooks.OperationConflict)
        stopped.go_on()
    assert (usage(), notes()) == (1, {"a": "text"})


@pytest.mark.trap("M10")
@pytest.mark.spec("C2")
def test_a_release_twenty_times_at_once_is_one_release_and_nothing_goes_below_zero() -> None:
    contract = subscribe()
    kept = hooks.reserve(operation(contract), quantity=3, using=BUSINESS, at=AT)
    permit = hooks.reserve(operation(contract), quantity=5, using=BUSINESS, at=AT)
    assert in_threads([partial(hooks.release, permit)] * 20) == [Ended.RELEASED] * 20
    assert used_and_held() == (0, kept.quantity)


@pytest.mark.trap("M10", "M8")
def test_settling_releasing_and_sweeping_at_once_end_a_reservation_once_and_as_its_marker_says() -> None:
    for committed in (True, False):
        contract = subscribe()
        permit = hooks.reserve(operation(contract), quantity=5, using=BUSINESS, at=AT)
        if committed:
            with transaction.atomic(using=BUSINESS):
                hooks.mark(permit.marker, using=BUSINESS)
        ending: list[Callable[[], object]] = [partial(hooks.release, permit), swept_now] * 4
        ending += [partial(hooks.settle, permit)] * 4 if committed else []
        ended = {answer for answer in in_threads(ending) if isinstance(answer, Ended)}
        assert ended == {Ended.SETTLED if committed else Ended.RELEASED}
    assert (usage(), used_and_held()) == (5, (5, 0))
    assert rows("SELECT count(*) FROM usage_meter_events") == [(1,)]


@pytest.mark.spec("C3")
def test_the_same_operation_in_two_transactions_at_once_waits_and_is_counted_once() -> None:
    contract = subscribe()
    with stopped_at("commercial.before_commit", lambda: write_note(contract, "a", "first", request="r")) as stopped:
        answers: dict[str, object] = {}

        def second() -> None:
            answers["second"] = write_note(contract, "a", "second", request="r")

        def first_goes_on() -> None:
            wait_until_somebody_waits_for_a_lock("attachments.schema")
            answers["first"] = stopped.go_on()

        in_threads([second, first_goes_on])
    assert answers["first"] == answers["second"]
    assert (usage(), used_and_held(), notes()) == (1, (1, 0), {"a": "second"})
    assert states() == [("settled", 1, "completion")]


@pytest.mark.spec("C3")
def test_a_transaction_that_rolls_back_leaves_the_reservation_to_the_one_that_waits_for_it() -> None:
    contract = subscribe()
    failing = partial(write_note, contract, "a", "first", request="r", fails=True)
    with stopped_at("commercial.marked", failing) as stopped:

        def second() -> None:
            write_note(contract, "a", "second", request="r")

        def first_goes_on() -> None:
            wait_until_somebody_waits_for_a_lock("attachments.schema")
            with pytest.raises(Interrupted):
                stopped.go_on()

        in_threads([second, first_goes_on])
    assert (usage(), used_and_held(), notes()) == (1, (1, 0), {"a": "second"})


@pytest.mark.spec("C9")
@pytest.mark.trap("M8")
def test_a_sweep_leaves_work_that_goes_on_alone() -> None:
    contract = subscribe()
    with stopped_at("commercial.before_commit", lambda: write_note(contract, "a", "text")) as stopped:
        found = swept_now()
        assert (found.live, found.settled, found.released) == (1, 0, 0)
        assert states() == [("reserved", 1, None)]
        stopped.go_on()
    assert (usage(), states()) == (1, [("settled", 1, "completion")])


@pytest.mark.spec("C3")
@pytest.mark.trap("M8")
def test_a_commit_that_comes_after_the_refusal_fails_before_the_work() -> None:
    contract = subscribe()
    with stopped_at("commercial.reserved", lambda: write_note(contract, "a", "text", request="r")) as stopped:
        assert swept_now().released == 1
        with pytest.raises(hooks.ReservationLost):
            stopped.go_on()
    assert (notes(), usage(), used_and_held()) == ({}, 0, (0, 0))
    write_note(contract, "a", "text", request="r")
    assert (notes(), usage(), states()) == ({"a": "text"}, 1, [("settled", 2, "completion")])


@pytest.mark.trap("D17")
@pytest.mark.slow
def test_everything_at_once_on_few_rows_never_deadlocks_and_the_counters_are_right() -> None:
    contracts = [subscribe(limit=30) for _ in range(3)]
    requests = [(contract, f"note-{number}", f"request-{number}") for contract in contracts for number in range(6)]

    def worker(seed: int) -> list[str]:
        chosen, answers = random.Random(seed), []
        for _ in range(12):
            contract, name, request = chosen.choice(requests)
            try:
                write_note(contract, name, "text", request=request, fails=chosen.random() < 0.4)
                answers.append("written")
            except (Interrupted, hooks.QuotaExceeded, hooks.ReservationLost, hooks.InFlight) as ended:
                answers.append(type(ended).__name__)
        return answers

    def sweeper() -> list[str]:
        return [f"failed {swept_now().failed}" for _ in range(3)]

    workers: list[Callable[[], list[str]]] = [partial(worker, seed) for seed in range(10)]
    answers = in_threads([*workers, sweeper, sweeper])
    assert sum(answer.count("written") for answer in answers) > 0
    assert {text for answer in answers[-2:] for text in answer} == {"failed 0"}
    swept_now()
    settled = rows("SELECT count(*) FROM commercial_runtime_reservations WHERE state = 'settled'")[0][0]
    assert (usage(), used_and_held()) == (settled, (settled, 0))
    committed = [one for one in markers() if one[0] == "reservation" and one[2] == "committed"]
    assert len(committed) == settled


def test_the_end_of_a_subscription_and_decisions_about_it_follow_one_another() -> None:
    contract = subscribe(limit=100)
    reserve(operation(contract))
    end = AT + timedelta(seconds=1)
    calls: list[Callable[[], object]] = [partial(reserve, operation(contract)) for _ in range(10)]
    calls.append(partial(end_subscription, subscription_id=contract.subscription_id, at=end))
    for _ in range(10):
        calls.append(partial(hooks.reserve, operation(contract), quantity=1, using=BUSINESS, at=end))
    answers = in_threads(calls)
    held = [answer for answer in answers if isinstance(answer, Permit) and answer.state is PermitState.RESERVED]
    assert len(held) >= 10
    assert used_and_held() == (0, 1 + len(held))
    assert rows("SELECT DISTINCT ends_at FROM commercial_entitlement_periods") == [(end,)]
