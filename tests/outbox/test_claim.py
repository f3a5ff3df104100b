"""Claiming: leases, fences, marks, and what is found although a mark is behind it."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connections

from outbox.claim import Claimer
from outbox.contracts.delivery import Retryable, RetryClass
from outbox.deliver import deliver
from outbox.dispatch import Dispatcher
from outbox.members import Members
from outbox.renew import Heartbeat
from outbox.settle import settle
from tests.outbox.conftest import FarSide, rows
from tests.outbox.make import run_created

HERE = "core_operations"


def connection() -> "psycopg.Connection[tuple[Any, ...]]":
    """The dispatcher's connection of this thread."""
    wrapper = connections["default.dispatch"]
    wrapper.ensure_connection()
    return wrapper.connection  # type: ignore[no-any-return]  # Django does not type its raw connection


def claimer(*, worker: str = "w1", batch: int = 10, lease: float = 60) -> Claimer:
    """A claimer of core that always looks from the beginning."""
    return Claimer(
        worker=worker, members=Members("default.dispatch"), batch=batch, lease=lease, full_scan_every=0.000001
    )


def expire_leases() -> None:
    """Make every lease of core run out, as time would."""
    with connections["default.schema"].cursor() as cursor:
        cursor.execute("ALTER TABLE outbox_deliveries DISABLE TRIGGER USER")
        cursor.execute("UPDATE outbox_deliveries SET lease_expires_at = now() - interval '1 s' WHERE status = 'leased'")
        cursor.execute("ALTER TABLE outbox_deliveries ENABLE TRIGGER USER")


@pytest.mark.spec("O19")
def test_a_claim_leases_and_writes_its_start_in_one_transaction(appended: Callable[..., None]) -> None:
    appended(run_created(), run_created())
    claimed = claimer().claim(connection(), HERE)
    assert len(claimed.rows) == 2
    assert (
        rows(
            "SELECT d.status, d.lease_owner, d.lease_token, d.attempt_count, s.attempt_id = d.current_attempt_id,"
            " d.lease_expires_at > now()"
            " FROM outbox_deliveries d JOIN outbox_delivery_attempt_starts s USING (event_id)"
        )
        == [("leased", "w1", 1, 1, True, True)] * 2
    )
    assert claimer(worker="w2").claim(connection(), HERE).rows == []


@pytest.mark.spec("O19")
def test_claims_are_oldest_first_and_never_more_than_a_batch(appended: Callable[..., None]) -> None:
    for _ in range(5):
        appended(run_created())
    one = claimer(batch=2)
    seen = [row.event_id for _ in range(3) for row in one.claim(connection(), HERE).rows]
    assert seen == [event for (event,) in rows("SELECT event_id::text FROM outbox_events ORDER BY created_at")]


@pytest.mark.spec("O19")
@pytest.mark.trap("D1", "D2")
def test_an_expired_lease_is_finished_as_unknown_and_claimed_again_and_the_late_worker_changes_nothing(
    appended: Callable[..., None],
) -> None:
    appended(run_created())
    first = claimer(worker="first").claim(connection(), HERE)
    expire_leases()
    second = claimer(worker="second").claim(connection(), HERE)
    assert (second.recovered, second.rows[0].lease_token) == (1, 2)
    assert rows("SELECT outcome FROM outbox_delivery_attempt_finishes") == [("lease_expired_unknown",)]
    late = deliver(first.rows, producer="core", destination=HERE, transport=FarSide())
    settled = settle(connection(), late, producer="core", destination=HERE)
    assert (settled.acknowledged, len(settled.fenced)) == (0, 1)
    assert rows("SELECT status, lease_owner FROM outbox_deliveries") == [("leased", "second")]
    now = deliver(second.rows, producer="core", destination=HERE, transport=FarSide())
    assert settle(connection(), now, producer="core", destination=HERE).acknowledged == 1
    assert rows("SELECT count(*) FROM outbox_delivery_attempt_finishes") == [(2,)]


@pytest.mark.spec("O19")
@pytest.mark.trap("D1")
def test_an_expired_lease_that_nobody_recovered_still_settles(appended: Callable[..., None]) -> None:
    appended(run_created())
    claimed = claimer().claim(connection(), HERE)
    expire_leases()
    settlement = deliver(claimed.rows, producer="core", destination=HERE, transport=FarSide())
    assert settle(connection(), settlement, producer="core", destination=HERE).acknowledged == 1
    assert claimer(worker="rescuer").claim(connection(), HERE).rows == []


@pytest.mark.spec("O19")
@pytest.mark.trap("D4")
def test_a_worker_that_comes_back_under_its_old_name_does_not_keep_its_leases(appended: Callable[..., None]) -> None:
    appended(run_created())
    claimer(worker="host:1").claim(connection(), HERE)
    assert claimer(worker="host:1").claim(connection(), HERE).rows == []
    expire_leases()
    assert claimer(worker="host:1").claim(connection(), HERE).recovered == 1


@pytest.mark.trap("D3")
def test_expired_rows_behind_a_page_of_locked_ones_are_still_rescued(appended: Callable[..., None]) -> None:
    appended(*[run_created() for _ in range(6)])
    claimer(batch=6).claim(connection(), HERE)
    expire_leases()
    holder = psycopg.connect(**_parameters(), autocommit=False)
    holder.execute(
        "SELECT 1 FROM outbox_deliveries WHERE (event_id, destination) IN (SELECT event_id, destination"
        " FROM outbox_deliveries WHERE status = 'leased' ORDER BY lease_expires_at LIMIT 4) FOR UPDATE"
    )
    assert claimer(worker="rescuer", batch=2).claim(connection(), HERE).recovered == 2
    holder.close()


def _parameters() -> dict[str, Any]:
    wanted = connections["default.dispatch"].get_connection_params()
    return {name: wanted[name] for name in ("host", "port", "user", "password", "dbname")}


@pytest.mark.spec("O19")
def test_a_mark_in_the_far_future_loses_nothing(appended: Callable[..., None]) -> None:
    appended(run_created())
    one = claimer()
    one.full_scan_every = 3600
    one.claim(connection(), "billing_settlement_catch_up")
    mark = one.marks["billing_settlement_catch_up"]
    one.marks[HERE] = mark
    mark.low = "2999-01-01T00:00:00Z"
    first = one.claim(connection(), HERE)
    assert (first.rows, first.full) == ([], False)
    assert len(one.claim(connection(), HERE).rows) == 1


@pytest.mark.spec("O19")
def test_a_retry_that_became_due_behind_the_mark_is_found(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None]
) -> None:
    appended(run_created(name="retried"))
    far_side.answer = lambda _: Retryable(RetryClass.WAITING_PREDECESSOR, "revision_gap")
    dispatcher.drain()
    appended(*[run_created() for _ in range(20)])
    far_side.answer = FarSide().answer
    for _ in range(2000):
        dispatcher.drain()
        if rows("SELECT count(*) FROM outbox_deliveries WHERE status <> 'acknowledged'") == [(0,)]:
            break
    assert rows("SELECT count(*) FROM outbox_events WHERE published_at IS NULL") == [(0,)]


@pytest.mark.spec("O19")
@pytest.mark.trap("D5")
def test_renewal_extends_what_is_held_and_reports_what_was_lost(appended: Callable[..., None]) -> None:
    appended(run_created(), run_created())
    claimed = claimer(lease=5).claim(connection(), HERE).rows
    heartbeat = Heartbeat(using="default.dispatch", producer="core", every=1, lease=3600)
    heartbeat.hold(claimed)
    assert heartbeat.renew_once() == 2
    assert rows("SELECT count(*) FROM outbox_deliveries WHERE lease_expires_at > now() + interval '50 min'") == [(2,)]
    expire_leases()
    claimer(worker="thief", batch=1).claim(connection(), HERE)
    assert heartbeat.renew_once() == 1
    assert len(heartbeat.lost()) == 1


@pytest.mark.spec("O19")
def test_a_draining_worker_gives_back_what_it_claimed(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None]
) -> None:
    from outbox import drain, steps

    appended(run_created())
    steps.hook = lambda step: drain.begin() if step == "claimed" else None
    try:
        assert dispatcher.drain().retried == 1
    finally:
        steps.hook = None
        drain.forget()
    assert far_side.seen == []
    assert rows("SELECT status, last_error_code, available_at <= now() FROM outbox_deliveries") == [
        ("pending", "worker_draining", True)
    ]
    assert dispatcher.drain().acknowledged == 1


@pytest.mark.spec("O4")
def test_terminal_deliveries_are_never_claimed_again(dispatcher: Dispatcher, appended: Callable[..., None]) -> None:
    appended(run_created())
    dispatcher.drain()
    assert claimer().claim(connection(), HERE).rows == []
