"""Billing posts what telemetry used: once per generation, later ones as differences, refusals without a trace."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from billing.ledger.models import ChargeSource, LedgerPosting
from billing.ledger.recompute import recompute
from billing.ledger.top_up import top_up
from billing.pricing.books import import_price_book, read_price_book
from billing.telemetry_charges.models import ChargeGeneration, StoredTelemetryCharge
from billing.telemetry_charges.post_charges import post_telemetry_charges
from metering.consumption.contracts import (
    CONSUMPTION_WORKLOAD,
    POST_TELEMETRY_CHARGES,
    ChargeConflicting,
    ChargePosted,
    ChargeRefused,
    ChargeSuperseded,
    TelemetryCharges,
)
from outbox.contracts.contract import ContractViolation
from outbox.transport import AccessRefused, ask
from tests.billing.books import balances, funded_account, standard_prices
from tests.conftest import ROOT
from tests.telemetry_charges.make import (
    CACHED,
    COST,
    HOUR,
    INPUT,
    OUTPUT,
    WINDOW,
    amount_of,
    another_book,
    payer,
    post_one,
    price,
    reasons,
    usage,
)
from tests.upstream.threads import in_threads

pytestmark = [pytest.mark.usefixtures("database")]


def charged(account: str) -> int:
    """What was charged to the account in all; the ledger recomputes."""
    assert recompute().differences == ()
    return balances(account)["revenue"]


@pytest.mark.spec("T13")
def test_a_charge_moves_quantity_times_price_from_the_wallet_to_revenue() -> None:
    account = payer(10 * COST)
    answer = post_one(usage())
    assert isinstance(answer, ChargePosted)
    assert (answer.amount_picos, answer.currency, answer.billing_account_id) == (str(COST), "USD", account)
    assert answer.price_book.ref == "price-book:standard:1"
    assert balances(account) == {"wallet": 9 * COST, "held": 0, "funding": -10 * COST, "revenue": COST}
    posting = LedgerPosting.objects.get(kind="charge")
    assert (posting.reference, posting.charge_source) == (f"charge:{answer.charge_id}:1", "telemetry")


@pytest.mark.spec("T13")
@pytest.mark.trap("M4")
def test_a_repeated_charge_gets_the_same_answer_and_moves_nothing() -> None:
    account = payer()
    first = post_one(usage())
    assert post_one(usage()) == first
    assert charged(account) == COST
    assert ChargeGeneration.objects.count() == 1


@pytest.mark.trap("M4")
def test_thirty_parallel_posts_of_one_charge_are_one_posting() -> None:
    account = payer()
    answers = in_threads([lambda: post_one(usage())] * 30)
    assert {answer.state for answer in answers} == {"posted"}
    assert charged(account) == COST
    assert LedgerPosting.objects.filter(kind="charge").count() == 1


@pytest.mark.spec("T13")
@pytest.mark.trap("M3")
def test_later_generations_move_the_difference_up_and_down_and_leave_earlier_postings_alone() -> None:
    account = payer()
    totals = []
    for generation, used in enumerate(({INPUT: 10}, {INPUT: 25}, {INPUT: 5, OUTPUT: 1}, {}, {INPUT: 7}), start=1):
        answer = post_one(usage(generation * 2, used=used))
        totals.append(amount_of(answer))
        assert charged(account) == totals[-1]
    assert totals == [10 * 150_000, 25 * 150_000, 5 * 150_000 + 600_000, 0, 7 * 150_000]
    rows = ChargeGeneration.objects.order_by("generation")
    assert [(row.generation, row.previous_generation) for row in rows] == [
        (2, None), (4, 2), (6, 4), (8, 6), (10, 8),
    ]  # fmt: skip
    assert [int(row.delta_picos) for row in rows] == [
        after - before for before, after in zip([0, *totals], totals, strict=False)
    ]
    assert StoredTelemetryCharge.objects.count() == 1


def test_a_generation_that_changes_no_amount_is_recorded_without_a_posting() -> None:
    standard_prices()
    another_book(version=2, effective_from=WINDOW - HOUR, llm_input_tokens=0)
    account = payer()
    post_one(usage(1, used={INPUT: 5}))
    assert amount_of(post_one(usage(2, used={INPUT: 50}))) == 0
    assert [(row.posting_id, int(row.delta_picos)) for row in ChargeGeneration.objects.all()] == [(None, 0)] * 2
    assert charged(account) == 0


def test_an_older_generation_that_comes_late_is_superseded_and_another_content_conflicts() -> None:
    account = payer()
    post_one(usage(3))
    identity = usage().charge_id
    assert post_one(usage(2)) == ChargeSuperseded(charge_id=identity, generation=2, latest_generation=3)
    conflict = ChargeConflicting(charge_id=identity, generation=3, latest_generation=3)
    assert post_one(usage(3, used={INPUT: 1})) == conflict
    longer = usage(4, end=WINDOW + 2 * HOUR)
    assert isinstance(post_one(longer), ChargeConflicting)
    assert charged(account) == COST


@pytest.mark.spec("T13")
def test_only_accounts_that_are_charged_from_telemetry_are_charged() -> None:
    payer(organization="org-runs", source=ChargeSource.RUNS)
    both = payer(organization="org-both", source=ChargeSource.RUNS)
    own = payer(organization="org-both")
    answers = post_telemetry_charges([usage(organization=name) for name in ("org-runs", "org-none", "org-both")])
    assert reasons(answers) == ["charged_from_runs", "no_account", "posted"]
    assert (charged(both), charged(own)) == (0, COST)


@pytest.mark.trap("M7")
def test_each_refusal_leaves_nothing_and_costs_its_neighbours_nothing_and_ends_with_its_cause() -> None:
    rich, poor = payer(organization="rich"), payer(COST - 1, organization="poor")
    funded_account(tenant="bookless", charge_source=ChargeSource.TELEMETRY, price_book_name="other")
    batch = [
        usage(organization="rich", applies_to="a"),
        usage(organization="rich", applies_to="b", used={INPUT: 5, CACHED: 3}),
        usage(organization="poor"),
        usage(organization="bookless"),
        usage(organization="rich", applies_to="c"),
        usage(organization="rich", start=datetime(2019, 1, 1, tzinfo=UTC)),
    ]
    answers = post_telemetry_charges(batch)
    expected = ["posted", "unknown_price", "insufficient_funds", "no_price_book", "posted", "no_price_book"]
    assert reasons(answers) == expected
    assert isinstance(answers[1], ChargeRefused)
    assert answers[1].detail == CACHED
    assert ChargeGeneration.objects.count() == 2
    another_book(version=2, effective_from=WINDOW - HOUR, llm_input_tokens=1, llm_cached_input_tokens=1)
    top_up(reference="more", billing_account_id=poor, amount_picos=COST)
    expected = ["posted", "posted", "posted", "no_price_book", "posted", "no_price_book"]
    assert reasons(post_telemetry_charges(batch[:2])) == expected[:2]
    assert post_telemetry_charges(batch[:1]) == answers[:1]
    assert charged(rich) == 2 * COST + 8


def test_a_batch_is_decided_in_its_order_as_long_as_the_wallet_lasts() -> None:
    account = payer(2 * COST)
    answers = post_telemetry_charges([usage(applies_to=model) for model in "abc"])
    assert reasons(answers) == ["posted", "posted", "insufficient_funds"]
    lower = usage(2, applies_to="a", used={})
    assert reasons(post_telemetry_charges([lower, usage(applies_to="c")])) == ["posted", "posted"]
    assert charged(account) == 2 * COST


def test_two_generations_in_one_batch_are_one_chain() -> None:
    account = payer()
    answers = post_telemetry_charges([usage(1), usage(2, used={INPUT: 1}), usage(1)])
    assert [answer.state for answer in answers] == ["posted", "posted", "superseded"]
    assert charged(account) == 150_000


@pytest.mark.trap("M3")
def test_a_charge_keeps_the_book_of_its_first_generation_unless_that_cannot_price_it() -> None:
    account = payer()
    post_one(usage(1))
    another_book(version=2, effective_from=WINDOW, llm_input_tokens=7, llm_cached_input_tokens=3)
    assert amount_of(post_one(usage(2, used={INPUT: 2}))) == 2 * 150_000
    assert amount_of(post_one(usage(3, used={INPUT: 2, CACHED: 1}))) == 2 * 7 + 3
    assert amount_of(post_one(usage(4, used={INPUT: 2}))) == 2 * 7
    assert charged(account) == 14


@pytest.mark.trap("M5")
@pytest.mark.parametrize(("early", "due"), [(timedelta(0), 7), (timedelta(microseconds=1), 150_000)])
def test_the_price_is_the_one_in_effect_when_the_window_begins_to_the_microsecond(early: timedelta, due: int) -> None:
    payer()
    another_book(version=2, effective_from=WINDOW, llm_input_tokens=7)
    assert amount_of(post_one(usage(start=WINDOW - early, used={INPUT: 1}))) == due


def test_the_price_of_a_model_goes_before_the_price_of_all() -> None:
    funded_account(tenant="org-1", charge_source=ChargeSource.TELEMETRY, price_book_name="models")
    prices = [price(INPUT, 10), price(INPUT, 1, appliesTo="small-1"), price(OUTPUT, 0)]
    file = {"name": "models", "bookVersion": 1, "currency": "USD", "effectiveFrom": "2020-01-01T00:00:00.000000Z"}
    import_price_book(read_price_book(json.dumps({**file, "prices": prices}).encode()))
    small, large = (post_one(usage(applies_to=model, used={INPUT: 5, OUTPUT: 9})) for model in ("small-1", "large-1"))
    assert (amount_of(small), amount_of(large)) == (5, 50)


def test_resource_charges_are_priced_by_their_own_dimensions() -> None:
    payer()
    another_book(version=2, effective_from=WINDOW, resource_samples=0, resource_samples_above_threshold=40)
    used = {"resource.samples": 60, "resource.samples_above_threshold": 12}
    assert amount_of(post_one(usage(kind="resource_utilization", applies_to="cpu", used=used))) == 480


def test_a_charge_that_was_altered_on_its_way_is_refused_with_its_whole_batch() -> None:
    account = payer()
    altered = usage(1).model_copy(update={"generation": 2})
    with pytest.raises(ContractViolation):
        post_telemetry_charges([usage(1, applies_to="other"), altered])
    assert charged(account) == 0


def test_only_consumption_may_order_charges() -> None:
    account = payer()
    batch = TelemetryCharges(charges=(usage(),))
    with pytest.raises(AccessRefused):
        ask(POST_TELEMETRY_CHARGES, workload="core.admission", expected=batch)
    assert charged(account) == 0
    answer = ask(POST_TELEMETRY_CHARGES, workload=CONSUMPTION_WORKLOAD, expected=batch)
    assert reasons(answer.answers) == ["posted"]


@pytest.mark.trap("M4")
def test_generations_that_race_end_at_the_latest_of_them() -> None:
    account = payer()
    answers = in_threads([lambda g=g: post_one(usage(g, used={INPUT: g})) for g in range(1, 21)])  # type: ignore[misc]  # the default binds the loop's value
    posted = [answer.generation for answer in answers if answer.state == "posted"]
    assert max(posted) == 20
    assert charged(account) == 20 * 150_000


CHILD = """
import os, signal, sys
import django
django.setup()
from billing.telemetry_charges.post_charges import post_telemetry_charges
from metering.consumption.contracts import TelemetryCharges
from outbox import steps
def die(step):
    if step == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
steps.hook = die
post_telemetry_charges(TelemetryCharges.parse(sys.argv[2].encode()).charges)
"""


@pytest.mark.trap("M2")
@pytest.mark.parametrize(("step", "left"), [("before_commit", 0), ("committed", COST)])
def test_a_process_that_is_killed_charges_nothing_or_everything_and_a_repeat_completes_it(step: str, left: int) -> None:
    account = payer()
    batch = TelemetryCharges(charges=(usage(),))
    arguments = [sys.executable, "-c", CHILD, f"telemetry_charges.{step}", batch.canonical().decode()]
    killed = subprocess.run(arguments, cwd=ROOT, env=dict(os.environ), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert charged(account) == left
    assert reasons(post_telemetry_charges(batch.charges)) == ["posted"]
    assert charged(account) == COST
