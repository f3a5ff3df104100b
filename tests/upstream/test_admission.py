import json
import uuid

import pytest
from django.db import connections

from billing.finalization.models import BillingFinalizationFence, BillingReservation, StoredFinalizationWork
from billing.ledger.models import ChargeSource, LedgerEntry, LedgerHold, LedgerPosting
from outbox.contracts.envelope import Envelope, decode_payload
from outbox.models import OutboxDelivery, OutboxEvent
from tests.billing.books import PICOS, balances, funded_account, open_holds, standard_prices
from tests.upstream.requests import AT, COST, request
from upstream.admission.admit import admit_run, admit_runs
from upstream.admission.contracts import (
    EstimatedQuantity,
    RunCreated,
    WalletReserved,
    disagreements,
)
from upstream.admission.models import AdmissionOutcome, Run, StoredManifest, StoredRefusal, WalletReservation
from upstream.admission.outcomes import Admitted, Conflicting, Refused

pytestmark = [pytest.mark.usefixtures("database")]

CORE = (AdmissionOutcome, Run, StoredManifest, WalletReservation, StoredRefusal)
BILLING = (BillingReservation, BillingFinalizationFence, StoredFinalizationWork, LedgerHold)


def counts() -> dict[str, int]:
    found = {model.__name__: model.objects.count() for model in (*CORE, *BILLING, LedgerPosting, LedgerEntry)}
    return found | {"events": OutboxEvent.objects.using("default").count()}


@pytest.mark.spec("O5", "O7")
def test_an_admitted_run_has_its_facts_its_hold_and_both_events() -> None:
    standard_prices()
    account = funded_account(1 * PICOS)
    answer = admit_run(request(account), at=AT)
    assert isinstance(answer, Admitted)
    run = Run.objects.get()
    assert (run.run_id, run.operation_id) == (answer.run_id, answer.operation_id)
    assert run.manifest.digest == answer.run_admission_manifest.digest
    assert int(run.wallet_reservation.hold_amount_picos) == COST
    assert balances(account) == {"wallet": PICOS - COST, "held": COST, "funding": -PICOS, "revenue": 0}
    assert open_holds(account) == [COST]
    reservation = BillingReservation.objects.get()
    assert reservation.confirmed_at is not None
    assert reservation.run_admission_manifest_digest == run.manifest.digest
    assert reservation.fence.active_work is not None
    assert reservation.fence.active_work.work_generation == 1
    assert OutboxDelivery.objects.using("default").filter(destination="core_operations").count() == 2


@pytest.mark.spec("O29")
def test_the_two_events_of_an_admission_agree_and_the_wallet_is_caused_by_the_run() -> None:
    standard_prices()
    answer = admit_run(request(funded_account()), at=AT)
    assert isinstance(answer, Admitted)
    events = {
        row.event_type: Envelope.parse(row.event_envelope.encode()) for row in OutboxEvent.objects.using("default")
    }
    run, wallet = events["run.created@2.0"], events["wallet.reserved@2.0"]
    of_run, of_wallet = decode_payload(run, RunCreated), decode_payload(wallet, WalletReserved)
    assert wallet.causation_id == run.event_id == str(answer.run_created_event_id)
    assert disagreements(run_envelope=run, run=of_run, wallet_envelope=wallet, wallet=of_wallet) == ()
    other = of_wallet.model_copy(update={"run_admission_manifest_digest": "0" * 64})
    assert disagreements(run_envelope=run, run=of_run, wallet_envelope=wallet, wallet=other) == (
        "run_admission_manifest",
    )


def test_repeating_an_operation_gets_the_same_answer_and_changes_nothing() -> None:
    standard_prices()
    wanted = request(funded_account())
    first = admit_run(wanted, at=AT)
    before = counts()
    retried = wanted.model_copy(update={"correlation_id": "another-trace"})
    assert admit_run(retried, at=AT) == first
    assert counts() == before


@pytest.mark.trap("M9")
def test_the_same_operation_with_another_body_is_a_conflict() -> None:
    standard_prices()
    account = funded_account()
    first = request(account)
    assert isinstance(admit_run(first, at=AT), Admitted)
    before = counts()
    for other in (
        request(account, operation=first.operation_id, input_tokens=1001),
        request(funded_account(), operation=first.operation_id),
        request(funded_account(tenant="org-2"), operation=first.operation_id, tenant="org-2"),
    ):
        assert admit_run(other, at=AT) == Conflicting(operation_id=first.operation_id)
    assert {**counts(), "LedgerPosting": 0, "LedgerEntry": 0} == {**before, "LedgerPosting": 0, "LedgerEntry": 0}


@pytest.mark.trap("M7")
@pytest.mark.parametrize(
    "reason", ["insufficient_funds", "unknown_account", "charge_source_not_runs", "unknown_price", "no_price_book"]
)
def test_a_refusal_leaves_nothing_behind_and_the_operation_may_be_repeated(reason: str) -> None:
    standard_prices()
    account = funded_account(
        COST - 1 if reason == "insufficient_funds" else PICOS,
        charge_source=ChargeSource.TELEMETRY if reason == "charge_source_not_runs" else ChargeSource.RUNS,
        price_book_name="other" if reason == "no_price_book" else "standard",
    )
    wanted = request(account, tenant="org-2" if reason == "unknown_account" else "org-1")
    if reason == "unknown_price":
        unknown = EstimatedQuantity(charge_dimension_key="llm.thoughts", quantity=1)
        wanted = wanted.model_copy(update={"estimated_quantities": (*wanted.estimated_quantities, unknown)})
    before = counts()
    answer = admit_run(wanted, at=AT)
    assert isinstance(answer, Refused)
    assert (answer.reason, answer.permanent) == (reason, False)
    assert answer.advice.endswith(".")
    assert counts() == before
    good = request(funded_account(), operation=wanted.operation_id)
    assert isinstance(admit_run(good, at=AT), Admitted)


def test_exactly_what_is_in_the_wallet_can_be_held() -> None:
    standard_prices()
    account = funded_account(COST)
    assert isinstance(admit_run(request(account), at=AT), Admitted)
    assert balances(account)["wallet"] == 0


def test_a_batch_answers_each_request_for_itself_and_in_order() -> None:
    standard_prices()
    rich, poor = funded_account(), funded_account(COST)
    old = request(rich)
    admit_run(old, at=AT)
    same = request(rich)
    answers = admit_runs(
        [
            request(poor),
            request(poor),
            request(rich),
            old,
            request(rich, operation=old.operation_id, input_tokens=1),
            request("account-unknown"),
            same,
            same,
            request(rich, operation=same.operation_id, input_tokens=2),
        ],
        at=AT,
    )
    kinds = [type(answer).__name__ for answer in answers]
    assert kinds == [
        "Admitted", "Refused", "Admitted", "Admitted", "Conflicting", "Refused", "Admitted", "Admitted", "Conflicting",
    ]  # fmt: skip
    assert Run.objects.count() == 4
    assert balances(poor) == {"wallet": 0, "held": COST, "funding": -COST, "revenue": 0}


def test_a_hundred_admissions_take_about_ten_statements_per_database() -> None:
    standard_prices()
    accounts = [funded_account() for _ in range(5)]
    batch = [request(accounts[i % 5]) for i in range(100)]
    admit_run(request(accounts[0]), at=AT)
    statements = dict.fromkeys(("default", "billing"), 0)

    def count(execute: object, sql: str, params: object, many: bool, context: dict) -> object:  # type: ignore[type-arg]  # the signature Django prescribes
        statements[context["connection"].alias] += 1
        return execute(sql, params, many, context)  # type: ignore[operator]  # likewise

    with connections["default"].execute_wrapper(count), connections["billing"].execute_wrapper(count):
        answers = admit_runs(batch, at=AT)
    assert all(isinstance(answer, Admitted) for answer in answers)
    assert statements["default"] <= 4, statements
    assert statements["billing"] <= 7, statements


def test_amounts_beyond_64_bits_are_exact() -> None:
    standard_prices()
    account = funded_account(10**30)
    huge = request(account, input_tokens=2**53 - 1, output_tokens=2**53 - 1)
    answer = admit_run(huge, at=AT)
    assert isinstance(answer, Admitted)
    assert open_holds(account) == [(2**53 - 1) * 750_000]


def test_a_projects_run_and_a_zero_estimate_are_admitted() -> None:
    standard_prices()
    account = funded_account(0)
    free = request(account, input_tokens=0, output_tokens=0)
    answer = admit_run(free.model_copy(update={"project_id": "project-1"}), at=AT)
    assert isinstance(answer, Admitted)
    assert json.loads(StoredManifest.objects.get().candidate)["holdAmountPicos"] == "0"
    assert Run.objects.get().project_id == "project-1"
    assert isinstance(uuid.UUID(answer.run_id.removeprefix("run:")), uuid.UUID)
