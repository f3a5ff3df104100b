"""Parallel batches on real connections: nothing twice, nothing lost, nobody in a circle."""

import random
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from operations.projector.consumer import consume
from outbox.contracts.delivery import Acknowledged, DeliveryRequest, NonRetryable, Verdict
from outbox.contracts.envelope import Envelope
from tests.operations.facts import PROJECTOR, fact, fact_delivery
from tests.operations.make import acknowledged, admission, changed, delivery, one, rows, state_of_projection

Consume = Callable[[Sequence[DeliveryRequest]], Sequence[Verdict]]


def at_once(batches: Sequence[Sequence[DeliveryRequest]], *, using: Consume = consume) -> list[list[Verdict]]:
    """Consume every batch in a thread and on a connection of its own, all let go at the same moment."""
    barrier = Barrier(len(batches))

    def work(batch: Sequence[DeliveryRequest]) -> list[Verdict]:
        try:
            connections["default"].ensure_connection()
            barrier.wait(timeout=30)
            return list(using(batch))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(batches)) as pool:
        return list(pool.map(work, batches))


@pytest.mark.spec("O20", "O26")
@pytest.mark.trap("D11")
def test_two_identical_batches_at_one_moment_write_one_receipt_each_and_both_are_acknowledged(database: None) -> None:
    for _ in range(10):
        batch = [request for _ in range(20) for request in admission().requests]
        shuffled = random.sample(batch, len(batch))
        first, second = at_once([batch, shuffled])
        answers = {answer.ack.event_id: answer for answer in acknowledged(first)}
        assert all(answer.receipt == answers[answer.ack.event_id].receipt for answer in acknowledged(second))
    assert one("SELECT count(*) FROM operations_projection_applied_receipts") == 400
    assert one("SELECT count(*) FROM timeline_entries") == 400
    assert one("SELECT sum(applied_events) FROM projection_build_runs") == 400


@pytest.mark.spec("O20")
@pytest.mark.trap("D11")
def test_after_losing_the_race_the_connection_is_usable(database: None) -> None:
    batch = admission().requests
    at_once([batch, batch, batch, batch])
    acknowledged(consume(admission().requests))
    connections["default"].ensure_connection()
    assert one("SELECT 1") == 1
    assert not connections["default"].in_atomic_block


@pytest.mark.spec("O26")
@pytest.mark.trap("D12")
def test_two_digests_of_one_event_id_at_one_moment_leave_one_applied(database: None) -> None:
    for _ in range(10):
        run = admission().run
        elsewhere = changed(admission().run, event_id=run.event_id)
        padding = [request for _ in range(5) for request in admission().requests]
        more = [request for _ in range(5) for request in admission().requests]
        verdicts = at_once([[delivery(run), *padding], [*more, delivery(elsewhere)]])
        contested = [verdicts[0][0], verdicts[1][-1]]
        acknowledged([*verdicts[0][1:], *verdicts[1][:-1]])
        assert sorted(type(verdict).__name__ for verdict in contested) == ["Acknowledged", "NonRetryable"]
        refused = next(verdict for verdict in contested if isinstance(verdict, NonRetryable))
        assert refused.code == "event_conflict"
        assert one("SELECT count(*) FROM operation_summaries WHERE run_event_id = %s", run.event_id) == 1


@pytest.mark.spec("O29")
@pytest.mark.trap("D27")
def test_run_and_reservation_at_one_moment_always_find_each_other(database: None) -> None:
    for _ in range(15):
        pairs = [admission() for _ in range(10)]
        runs, wallets = [delivery(pair.run) for pair in pairs], [delivery(pair.wallet) for pair in pairs]
        for verdicts in at_once([runs, random.sample(wallets, len(wallets))]):
            acknowledged(verdicts)
    assert rows("SELECT reservation_state, count(*) FROM operation_summaries GROUP BY 1") == [("linked", 150)]
    assert one("SELECT count(*) FROM pending_unlinked_reservations WHERE state <> 'linked'") == 0
    assert one("SELECT count(*) FROM timeline_entries") == 300


@pytest.mark.spec("O26")
@pytest.mark.trap("D27")
def test_revisions_of_one_aggregate_spread_over_parallel_batches_end_complete(database: None) -> None:
    names = [f"testing:{uuid.uuid4()}" for _ in range(4)]
    events = [fact(aggregate_id=name, revision=revision) for name in names for revision in range(1, 9)]
    waiting: list[Envelope] = events
    rounds = 0
    while waiting:
        rounds += 1
        random.shuffle(waiting)
        parts = [part for part in (waiting[number::4] for number in range(4)) if part]
        answers = at_once([[fact_delivery(event) for event in part] for part in parts], using=PROJECTOR.consume)
        waiting = [
            event
            for part, verdicts in zip(parts, answers, strict=True)
            for event, verdict in zip(part, verdicts, strict=True)
            if not isinstance(verdict, Acknowledged)
        ]
        assert rounds <= 20
    assert rows("SELECT DISTINCT applied_revision, has_open_gap FROM projection_aggregates") == [(8, False)]
    assert not state_of_projection()["open gaps"]
    assert one("SELECT count(*) FROM timeline_entries") == 32


@pytest.mark.spec("O26")
@pytest.mark.trap("D17")
def test_overlapping_batches_in_opposite_order_never_deadlock(database: None) -> None:
    def deadlocks() -> Any:
        return one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")

    before = deadlocks()
    for _ in range(5):
        batch = [request for _ in range(50) for request in admission().requests]
        shuffles = [batch, list(reversed(batch)), *(random.sample(batch, len(batch)) for _ in range(2))]
        for verdicts in at_once(shuffles):
            acknowledged(verdicts)
    connections["default"].close()
    assert deadlocks() == before
