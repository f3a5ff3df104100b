"""Revisions of one aggregate are applied in order, whatever the order of arrival, and a gap is never papered over."""

import itertools
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outbox.contracts.delivery import Acknowledged, NonRetryable, Retryable, RetryClass
from tests.operations.facts import PROJECTOR, fact, fact_delivery
from tests.operations.make import (
    acknowledged,
    admission,
    changed,
    delivery,
    new_event_id,
    one,
    rows,
    state_of_projection,
)


def _new_aggregate() -> str:
    return f"testing:{uuid.uuid4()}"


@pytest.mark.spec("O26", "O30")
def test_a_gap_is_recorded_answers_a_wait_and_gets_no_receipt(database: None) -> None:
    aggregate = _new_aggregate()
    first = fact(aggregate_id=aggregate, revision=1)
    third = fact(aggregate_id=aggregate, revision=3)
    (verdict,) = PROJECTOR.consume([fact_delivery(third)])
    assert isinstance(verdict, Retryable)
    assert verdict.retry_class is RetryClass.WAITING_PREDECESSOR
    assert verdict.code == "revision_gap"
    assert one("SELECT count(*) FROM operations_projection_applied_receipts") == 0
    assert one("SELECT count(*) FROM timeline_entries") == 0
    assert rows(
        "SELECT aggregate_id, event_id::text, missing_from, waiting_revision, state FROM revision_gaps",
        alias="default.read",
    ) == [(aggregate, third.event_id, 1, 3, "open")]

    acknowledged(PROJECTOR.consume([fact_delivery(first)]))
    assert rows("SELECT missing_from, state FROM revision_gaps") == [(2, "open")]
    acknowledged(PROJECTOR.consume([fact_delivery(fact(aggregate_id=aggregate, revision=2))]))
    assert rows("SELECT missing_from, state, resolved_at IS NOT NULL FROM revision_gaps") == [(2, "resolved", True)]
    acknowledged(PROJECTOR.consume([fact_delivery(third)]))
    assert rows("SELECT applied_revision, has_open_gap FROM projection_aggregates") == [(3, False)]


@pytest.mark.spec("O26")
def test_a_gap_is_recorded_once_however_often_its_event_comes(database: None) -> None:
    second = fact_delivery(fact(aggregate_id=_new_aggregate(), revision=2))
    for _ in range(3):
        PROJECTOR.consume([second])
    assert one("SELECT count(*) FROM revision_gaps") == 1


@pytest.mark.spec("O26")
@pytest.mark.trap("D8")
def test_a_gap_holds_its_own_aggregate_and_no_other(database: None) -> None:
    waiting, free = _new_aggregate(), _new_aggregate()
    batch = [fact(aggregate_id=waiting, revision=2), *(fact(aggregate_id=free, revision=number) for number in (1, 2))]
    verdicts = PROJECTOR.consume([fact_delivery(event) for event in batch])
    assert isinstance(verdicts[0], Retryable)
    acknowledged(verdicts[1:])


@pytest.mark.spec("O26")
def test_several_revisions_of_one_batch_are_applied_in_order_whatever_their_place(database: None) -> None:
    aggregate = _new_aggregate()
    events = [fact(aggregate_id=aggregate, revision=revision) for revision in range(1, 6)]
    acknowledged(PROJECTOR.consume([fact_delivery(event) for event in reversed(events)]))
    assert one("SELECT applied_revision FROM projection_aggregates") == 5
    assert one("SELECT count(*) FROM revision_gaps") == 0


@pytest.mark.spec("O26")
def test_a_gap_is_judged_per_producer(database: None) -> None:
    """The same aggregate id under another owner is another aggregate."""
    run = admission().run
    acknowledged(PROJECTOR.consume([fact_delivery(fact(aggregate_id=run.aggregate_id, revision=1))]))
    acknowledged(PROJECTOR.consume([delivery(run)]))
    (verdict,) = PROJECTOR.consume([delivery(changed(run, event_id=new_event_id()))])
    assert isinstance(verdict, NonRetryable)
    assert rows("SELECT producer, applied_revision FROM projection_aggregates ORDER BY 1") == [
        ("billing", 1),
        ("core", 1),
    ]


@pytest.mark.spec("O26")
def test_every_order_of_arrival_ends_in_the_same_projection(database: None) -> None:
    """Four revisions in all 24 orders, one by one, each redelivered until it is acknowledged."""
    for order in itertools.permutations(range(1, 5)):
        aggregate = _new_aggregate()
        events = {revision: fact(aggregate_id=aggregate, revision=revision) for revision in order}
        pending = list(order)
        rounds = 0
        while pending:
            rounds += 1
            pending = [
                revision
                for revision in pending
                if not isinstance(PROJECTOR.consume([fact_delivery(events[revision])])[0], Acknowledged)
            ]
        assert rounds <= 4
        assert rows(
            "SELECT applied_revision, has_open_gap FROM projection_aggregates WHERE aggregate_id = %s", aggregate
        ) == [(4, False)]
    assert one("SELECT count(*) FROM revision_gaps WHERE state = 'open'") == 0
    assert one("SELECT count(*) FROM operations_projection_applied_receipts") == 24 * 4


@st.composite
def _arrivals(draw: st.DrawFn) -> list[list[tuple[int, int]]]:
    """Batches of (aggregate, revision): three aggregates of four revisions, some delivered twice, in any order."""
    every = [(aggregate, revision) for aggregate in range(3) for revision in range(1, 5)]
    again = draw(st.lists(st.sampled_from(every), max_size=6))
    shuffled = draw(st.permutations(every + again))
    cuts = sorted(draw(st.sets(st.integers(1, len(shuffled) - 1), max_size=5)))
    return [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(shuffled)], strict=True)]


@pytest.mark.spec("O26")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=_arrivals())
def test_batches_in_any_order_with_repeats_lose_and_double_nothing(
    database: None, batches: list[list[tuple[int, int]]]
) -> None:
    names = [_new_aggregate() for _ in range(3)]
    events = {
        (aggregate, revision): fact(aggregate_id=names[aggregate], revision=revision)
        for aggregate in range(3)
        for revision in range(1, 5)
    }
    for _ in range(5):
        for batch in batches:
            PROJECTOR.consume([fact_delivery(events[key]) for key in batch])
    for name in names:
        assert rows(
            "SELECT applied_revision, has_open_gap FROM projection_aggregates WHERE aggregate_id = %s", name
        ) == [(4, False)]
        assert one("SELECT count(*) FROM timeline_entries WHERE aggregate_id = %s", name) == 4
    assert not state_of_projection()["open gaps"]
