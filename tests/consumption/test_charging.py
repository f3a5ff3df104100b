"""What is owed is charged by billing exactly once; corrections are differences; whatever is refused comes again."""

from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

from billing.ledger.models import ChargeSource, LedgerPosting
from billing.ledger.recompute import recompute
from billing.ledger.top_up import top_up
from billing.telemetry_charges.models import ChargeGeneration
from metering.consumption import ask_billing as asking
from metering.consumption.models import ChargeState
from metering.consumption.repair import reissue
from metering.otlp.fields import Kind
from metering.otlp.identify import scan
from outbox.transport import InProcess, NotBound, Pass
from tests.billing.books import balances
from tests.consumption.make import (
    HOUR,
    WINDOW,
    ask_now,
    charges,
    exclude,
    learn,
    llm,
    receive,
    sample,
    swept,
)
from tests.telemetry_charges.make import another_book, payer

pytestmark = [pytest.mark.usefixtures("database")]
ONE_CALL = 100 * 150_000 + 10 * 600_000
"""What one call of the tests costs at the standard prices, in pico-units."""


def charged(account: str) -> int:
    assert recompute().differences == ()
    return balances(account)["revenue"]


def states() -> list[str]:
    return [charge.state for charge in charges()]


@pytest.mark.spec("T13")
def test_each_window_is_charged_once_at_its_price_on_the_organisations_account() -> None:
    account, other = payer(), payer(organization="org-2")
    learn(k101="org-1", k102="org-2")
    receive(llm(), llm(), llm(WINDOW + HOUR), llm(manager_key_id="102"))
    assert swept().charges == {ChargeState.POSTED: 3}
    assert (charged(account), charged(other)) == (3 * ONE_CALL, ONE_CALL)
    assert swept().charges == {}
    row = charges(organization_id="org-1", window_start=WINDOW)[0]
    assert (row.amount_picos, row.currency, row.billing_account_id) == (2 * ONE_CALL, "USD", account)
    stored = ChargeGeneration.objects.get(charge_id=row.charge_id)
    assert (stored.digest, stored.generation, stored.amount_picos) == (row.posted_sha256, 1, row.amount_picos)


@pytest.mark.spec("T13")
@pytest.mark.trap("M3")
def test_late_events_are_charged_as_differences_and_the_total_is_as_if_they_had_been_on_time() -> None:
    account = payer()
    learn(k101="org-1")
    for calls in (1, 2, 4):
        receive(*[llm() for _ in range(calls)])
        swept()
    assert charged(account) == 7 * ONE_CALL
    deltas = ChargeGeneration.objects.order_by("generation").values_list("delta_picos", flat=True)
    assert [int(delta) for delta in deltas] == [ONE_CALL, 2 * ONE_CALL, 4 * ONE_CALL]


@pytest.mark.spec("T13")
def test_an_event_that_is_excluded_before_is_never_charged_and_one_excluded_after_is_given_back() -> None:
    account = payer()
    learn(k101="org-1", k102="org-1")
    receive(llm(event_id="a"), llm(event_id="b", prompt_tokens=1_000_000))
    exclude("b")
    swept()
    assert charged(account) == ONE_CALL
    exclude("a")
    assert swept().charges == {ChargeState.POSTED: 1}
    assert charged(account) == 0
    assert [int(row.delta_picos) for row in ChargeGeneration.objects.order_by("generation")] == [ONE_CALL, -ONE_CALL]
    receive(llm(event_id="c"))
    swept()
    assert charged(account) == ONE_CALL


@pytest.mark.spec("T6", "T13")
def test_an_event_id_that_turns_up_under_a_second_time_is_charged_once_in_the_end() -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm(event_id="retried"))
    receive(llm(WINDOW + 5 * HOUR, event_id="retried"), llm(WINDOW + 5 * HOUR))
    swept()
    assert charged(account) == 3 * ONE_CALL
    assert scan(Kind.LLM_BILLING, seconds=60) == 1
    assert swept().charges == {ChargeState.POSTED: 1}
    assert charged(account) == 2 * ONE_CALL
    assert [(c.window_start, c.generation, c.input_tokens) for c in charges()] == [
        (WINDOW, 1, 100), (WINDOW + 5 * HOUR, 2, 100),
    ]  # fmt: skip


@pytest.mark.spec("T13")
def test_an_organisation_that_is_charged_from_runs_is_counted_and_not_charged() -> None:
    account = payer(source=ChargeSource.RUNS)
    learn(k101="org-1")
    receive(llm())
    assert swept().charges == {ChargeState.NOT_CHARGED: 1}
    (row,) = charges()
    assert (row.refusal, row.ask_after) == ("charged_from_runs", None)
    assert swept().charges == {}
    receive(llm())
    assert swept().charges == {ChargeState.NOT_CHARGED: 1}
    assert charged(account) == 0


@pytest.mark.trap("M7")
def test_whatever_billing_refuses_waits_with_its_reason_and_is_charged_when_the_cause_is_gone() -> None:
    learn(k101="org-1", k102="org-2")
    receive(llm(cached_input_tokens=1), llm(manager_key_id="102"))
    receive(sample(), mode="per_cluster")
    poor = payer(ONE_CALL - 1, organization="org-2")
    assert swept().charges == {ChargeState.REFUSED: 3}
    assert {(c.organization_id, c.kind): (c.refusal, c.refusal_detail) for c in charges()} == {
        ("org-1", "llm_billing"): ("no_account", None),
        ("org-1", "resource_utilization"): ("no_account", None),
        ("org-2", "llm_billing"): ("insufficient_funds", None),
    }
    rich = payer()
    top_up(reference="more", billing_account_id=poor, amount_picos=1)
    assert swept().charges == {}, "not asked again before its time"
    ask_now()
    assert swept().charges == {ChargeState.POSTED: 1, ChargeState.REFUSED: 2}
    assert {row.refusal_detail for row in charges(state="refused")} == {"llm.cached_input_tokens", "resource.samples"}
    another_book(version=2, effective_from=WINDOW, llm_input_tokens=1, llm_cached_input_tokens=1, llm_output_tokens=1,
                 resource_samples=5)  # fmt: skip
    ask_now()
    assert swept().charges == {ChargeState.POSTED: 2}
    assert (charged(poor), charged(rich)) == (ONE_CALL, 110 + 5)


def test_a_refused_charge_that_changes_is_asked_about_at_once_with_its_new_quantities() -> None:
    learn(k101="org-1")
    receive(llm())
    swept()
    account = payer()
    receive(llm())
    assert swept().charges == {ChargeState.POSTED: 1}
    assert charged(account) == 2 * ONE_CALL


class Unreachable(InProcess):
    """Billing in another place that cannot be reached now."""

    def ask(self, *arguments: Any, **options: Any) -> Any:
        raise NotBound


class AnswerLost(InProcess):
    """Billing does what it is asked, and its answer is lost."""

    def ask(self, question: Any, *, expected: Any, access: Pass) -> Any:
        super().ask(question, expected=expected, access=access)
        raise ConnectionError


class Picky(InProcess):
    """Billing fails whenever one model is among what it is asked about."""

    def ask(self, question: Any, *, expected: Any, access: Pass) -> Any:
        if any(charge.applies_to == "odd" for charge in expected.charges):
            raise RuntimeError
        return super().ask(question, expected=expected, access=access)


@pytest.mark.parametrize("kind", [Unreachable, AnswerLost])
def test_without_an_answer_nothing_is_lost_and_nothing_is_charged_twice(kind: type, settings: Any) -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm())
    settings.OUTBOX_TRANSPORT = f"{__name__}.{kind.__name__}"
    assert swept().charges == {}
    assert states() == ["due"]
    settings.OUTBOX_TRANSPORT = "outbox.transport.InProcess"
    assert swept().charges == {}, "asked again only after a while"
    ask_now()
    assert swept().charges == {ChargeState.POSTED: 1}
    assert charged(account) == ONE_CALL


@pytest.mark.trap("M3")
def test_an_answer_that_was_lost_before_the_quantities_changed_does_not_confuse_the_next() -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm())
    taken_before(AnswerLost)
    receive(llm())
    assert swept().charges == {ChargeState.POSTED: 1}
    assert charged(account) == 2 * ONE_CALL
    assert [(row.generation, row.posted_generation) for row in charges()] == [(2, 2)]


def taken_before(kind: type) -> None:
    """A sweep through another transport."""
    with override_settings(OUTBOX_TRANSPORT=f"{__name__}.{kind.__name__}"):
        swept()


@pytest.mark.trap("D8")
def test_a_charge_on_which_billing_fails_costs_its_neighbours_nothing() -> None:
    account = payer()
    learn(k101="org-1")
    receive(llm(), llm(model_name="odd"), llm(model_name="large-1"))
    taken_before(Picky)
    assert sorted(states()) == ["due", "posted", "posted"]
    assert charged(account) == 2 * ONE_CALL


def test_more_charges_than_fit_into_one_question_are_all_posted(monkeypatch: pytest.MonkeyPatch) -> None:
    account = payer()
    monkeypatch.setattr(asking, "MAX_BATCH", 2)
    learn(k101="org-1")
    receive(*[llm(model_name=f"m-{number}") for number in range(5)])
    assert swept().charges == {ChargeState.POSTED: 5}
    assert charged(account) == 5 * ONE_CALL
    assert LedgerPosting.objects.filter(kind="charge").count() == 5


def test_names_of_the_longest_and_strangest_kind_are_charged_like_any_other() -> None:
    odd = '\u00e9\u4e2d\U0001f600"\\/\x01\x1f\x7f\u2028 '
    names = [odd, "\U0001f600" * 255, "'; DROP TABLE consumption_lines; --", "a" * 255]
    account = payer()
    learn(k101="org-1")
    receive(*[llm(model_name=name, provider=name) for name in names])
    assert swept().charges == {ChargeState.POSTED: 4}
    assert charged(account) == 4 * ONE_CALL
    receive(*[llm(model_name=name, manager_key_id=None, organization_id=name) for name in names], mode="per_cluster")
    assert swept().charges == {ChargeState.REFUSED: 4}
    assert {row.refusal for row in charges(state="refused")} == {"no_account"}


@pytest.mark.trap("D24")
def test_a_store_that_was_restored_from_before_blocks_visibly_until_an_operator_decides() -> None:
    account = payer()
    learn(k101="org-1")
    for _ in range(3):
        receive(llm())
        swept()
    forget = (
        "UPDATE consumption_charges SET generation = 1, input_tokens = 5, state = 'due', ask_after = now(),"
        " posted_generation = NULL, posted_sha256 = NULL, billing_account_id = NULL, price_book_ref = NULL,"
        " currency = NULL, amount_picos = NULL"
    )
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("ALTER TABLE consumption_charges DISABLE TRIGGER USER")
        cursor.execute(forget)
        cursor.execute("ALTER TABLE consumption_charges ENABLE TRIGGER USER")
    done = swept()
    assert (done.charges, done.healthy) == ({ChargeState.CONFLICTING: 1}, False)
    receive(llm())
    assert swept().charges == {}
    (row,) = charges()
    assert (row.state, row.standing_generation, row.generation, row.input_tokens) == ("conflicting", 3, 2, 400)
    assert charged(account) == 3 * ONE_CALL
    assert reissue(charge_id=str(row.charge_id))
    assert not reissue(charge_id=str(row.charge_id))
    assert swept().charges == {ChargeState.POSTED: 1}
    assert (charges()[0].posted_generation, charged(account)) == (4, 4 * ONE_CALL)
