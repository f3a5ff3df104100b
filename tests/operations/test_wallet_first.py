"""A reservation and its run are verified against each other, whichever arrives first (O29)."""

import itertools

import pytest

from config.owners import owner_named
from outbox.contracts.delivery import Acknowledged
from outbox.contracts.envelope import Envelope
from tests.conftest import empty_tables
from tests.operations.make import (
    Admission,
    acknowledged,
    admission,
    apply,
    changed,
    delivery,
    new_event_id,
    one,
    rows,
    state_of_projection,
)


@pytest.mark.spec("O29")
def test_a_reservation_before_its_run_waits_with_its_receipt_and_builds_no_operation(database: None) -> None:
    pair = admission()
    acknowledged(apply(delivery(pair.wallet)))
    assert one("SELECT count(*) FROM operation_summaries") == 0
    assert one("SELECT count(*) FROM timeline_entries") == 0
    assert rows("SELECT event_id::text, state, run_id, event_envelope FROM pending_unlinked_reservations") == [
        (pair.wallet.event_id, "pending", pair.run.aggregate_id, pair.wallet.canonical().decode())
    ]

    acknowledged(apply(delivery(pair.run)))
    assert rows("SELECT state, run_event_id::text FROM pending_unlinked_reservations") == [
        ("linked", pair.run.event_id)
    ]
    assert rows("SELECT reservation_state, reservation_event_id::text FROM operation_summaries") == [
        ("linked", pair.wallet.event_id)
    ]
    assert one("SELECT count(*) FROM timeline_entries WHERE operation_id = %s", pair.operation_id) == 2


@pytest.mark.spec("O29")
def test_a_run_before_its_reservation_shows_the_reservation_as_delayed(database: None) -> None:
    pair = admission()
    acknowledged(apply(delivery(pair.run)))
    assert rows(
        "SELECT reservation_state, reservation_event_id, currency, hold_amount_picos, reserved_at"
        " FROM operation_summaries"
    ) == [("source_delayed", None, None, None, None)]
    acknowledged(apply(delivery(pair.wallet)))
    assert rows(
        "SELECT reservation_state, reservation_event_id::text, currency, hold_amount_picos FROM operation_summaries"
    ) == [("linked", pair.wallet.event_id, "USD", 1234567890123)]
    assert one("SELECT count(*) FROM pending_unlinked_reservations") == 0


@pytest.mark.spec("O26", "O29")
def test_every_order_and_grouping_of_run_and_reservation_ends_in_the_same_projection(database: None) -> None:
    pair = admission()
    run, wallet = delivery(pair.run), delivery(pair.wallet)
    seen = []

    for batches in ([[run, wallet]], [[wallet, run]], [[run], [wallet]], [[wallet], [run]], [[wallet], [wallet, run]]):
        for batch in batches:
            acknowledged(apply(*batch))
        seen.append(state_of_projection())
        empty_tables(owner_named("core"))
    assert all(state == seen[0] for state in seen)


def _other(pair: Admission) -> dict[str, Envelope]:
    """The same reservation, each time saying one thing differently from its run."""
    other = admission()
    manifest = {"runAdmissionManifestDigest": "e" * 64}
    return {
        "causation_id": changed(pair.wallet, causation_id=other.run.event_id),
        "operation_id": changed(pair.wallet, operation_id=other.operation_id),
        "correlation_id": changed(pair.wallet, correlation_id="another"),
        "tenant_kind": changed(pair.wallet, tenant_kind="personal"),
        "tenant_id": changed(pair.wallet, tenant_id="another"),
        "workspace_id": changed(pair.wallet, workspace_id="another"),
        "project_id": changed(pair.wallet, project_id=None),
        "billing_account_id": changed(pair.wallet, payload={"billingAccountId": "another"}),
        "billing_reservation_id": changed(
            pair.wallet, aggregate_id="reservation:another", payload={"billingReservationId": "reservation:another"}
        ),
        "run_admission_manifest": changed(pair.wallet, payload=manifest),
    }


DIFFERENCES = tuple(_other(admission()))


@pytest.mark.spec("O29")
@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("order", ["wallet first", "run first", "one batch"])
def test_a_reservation_that_contradicts_its_run_is_visible_and_joins_nothing(
    database: None, name: str, order: str
) -> None:
    pair = admission()
    wallet = _other(pair)[name]
    batches = {
        "wallet first": [[wallet], [pair.run]],
        "run first": [[pair.run], [wallet]],
        "one batch": [[wallet, pair.run]],
    }
    for batch in batches[order]:
        acknowledged(apply(*(delivery(event) for event in batch)))
    assert rows("SELECT state, disagreements, run_event_id::text FROM pending_unlinked_reservations") == [
        ("mismatched", name, pair.run.event_id)
    ]
    assert rows("SELECT reservation_state, reservation_event_id FROM operation_summaries") == [("mismatched", None)]
    assert rows("SELECT event_id::text FROM timeline_entries") == [(pair.run.event_id,)]


@pytest.mark.spec("O29")
def test_the_reservation_that_fits_joins_whatever_came_with_it(database: None) -> None:
    pair = admission()
    wrong = changed(_other(pair)["billing_reservation_id"], event_id=new_event_id())
    for order in itertools.permutations([pair.run, pair.wallet, wrong]):
        fresh = _renamed(pair, wrong)
        for event in order:
            acknowledged(apply(delivery(fresh[event.event_id])))
        run = fresh[pair.run.event_id]
        assert rows(
            "SELECT reservation_state, reservation_event_id::text FROM operation_summaries WHERE run_id = %s",
            run.aggregate_id,
        ) == [("linked", fresh[pair.wallet.event_id].event_id)]
        assert (
            one("SELECT state FROM pending_unlinked_reservations WHERE event_id = %s", fresh[wrong.event_id].event_id)
            == "mismatched"
        )


def _renamed(pair: Admission, wrong: Envelope) -> dict[str, Envelope]:
    """The three events again, under ids of their own."""
    new = admission()
    return {
        pair.run.event_id: new.run,
        pair.wallet.event_id: new.wallet,
        wrong.event_id: changed(
            new.wallet,
            event_id=new_event_id(),
            aggregate_id=f"{new.wallet.aggregate_id}-x",
            payload={"billingReservationId": f"{new.wallet.aggregate_id}-x"},
        ),
    }


@pytest.mark.spec("O29")
def test_a_second_reservation_event_that_agrees_does_not_replace_the_first(database: None) -> None:
    pair = admission()
    acknowledged(apply(*pair.requests))
    second = changed(pair.wallet, event_id=new_event_id(), aggregate_revision=2)
    acknowledged(apply(delivery(second)))
    assert one("SELECT reservation_event_id::text FROM operation_summaries") == pair.wallet.event_id
    assert rows("SELECT state, disagreements FROM pending_unlinked_reservations") == [
        ("mismatched", "reservation_event_id")
    ]


@pytest.mark.spec("O29")
def test_a_reservation_of_another_run_stays_apart(database: None) -> None:
    """It names a run that has not arrived, so it waits for that run and touches no other."""
    pair, stranger = admission(), admission()
    acknowledged(apply(delivery(stranger.wallet), delivery(pair.run)))
    assert one("SELECT reservation_state FROM operation_summaries") == "source_delayed"
    assert one("SELECT state FROM pending_unlinked_reservations") == "pending"


@pytest.mark.spec("O26", "O29")
def test_amounts_survive_to_the_last_pico(database: None) -> None:
    pair = admission()
    largest = "9" * 38
    wallet = changed(pair.wallet, payload={"holdAmountPicos": largest})
    verdicts = apply(delivery(pair.run), delivery(wallet))
    assert all(isinstance(verdict, Acknowledged) for verdict in verdicts)
    assert one("SELECT hold_amount_picos::text FROM operation_summaries") == largest
