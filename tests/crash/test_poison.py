"""One bad event: how often it is tried, and what it holds up (D7, D8, D12)."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from config.owners import owner_named
from config.verify.report import verify
from outbox.contracts.delivery import DeliveryRequest, Retryable, RetryClass, Verdict
from outbox.dispatch import Dispatcher
from tests.outbox.conftest import FarSide, acknowledge, rows
from tests.outbox.make import admission, run_created
from tests.verify.tamper import tamper
from tests.verify.world import append, drain

TRIED = "SELECT attempt_count FROM outbox_deliveries WHERE event_id = %s"
SLOWLY = {"base": 3600, "factor": 1, "cap": 3600, "jitter": False, "quarantine_after": None}


def three_dispatchers(answer: Callable[[DeliveryRequest], Verdict]) -> None:
    """Drain core three times at once, in threads with connections of their own."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with Dispatcher(owner_named("core"), deliver_through=FarSide(answer=answer)) as dispatcher:
                for _ in range(5):
                    dispatcher.drain()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.spec("O30")
@pytest.mark.trap("D7")
def test_three_dispatchers_try_a_poison_event_as_often_as_its_policy_says_and_not_three_times_as_often(
    database: None, settings: Any
) -> None:
    settings.OUTBOX_RETRY = {**settings.OUTBOX_RETRY, "transient": SLOWLY}
    poison = run_created()
    append(poison, *[event for _ in range(10) for event in admission()])

    def answer(request: DeliveryRequest) -> Verdict:
        if request.event_id == str(poison.event_id):
            return Retryable(RetryClass.TRANSIENT, "poison")
        return acknowledge(request)

    for due in range(1, 4):
        three_dispatchers(answer)
        assert rows(TRIED, poison.event_id) == [(due,)]
        tamper("core", "UPDATE outbox_deliveries SET available_at = now() WHERE status = 'pending'")
    assert rows("SELECT count(*) FROM outbox_deliveries WHERE status = 'acknowledged' AND attempt_count = 1") == [(20,)]


@pytest.mark.spec("O26", "O31")
@pytest.mark.trap("D8")
def test_a_poison_event_first_in_its_batch_and_aggregate_holds_up_its_own_aggregate_only(database: None) -> None:
    first = run_created(name="held", operation_id="op:taken")
    append(run_created(name="other", operation_id="op:taken"))
    drain()
    append(first)
    append(run_created(name="held", aggregate_revision=2, operation_id="op:taken"))
    append(*[event for _ in range(10) for event in admission()])
    drain()
    states = dict(rows("SELECT event_id, status FROM outbox_deliveries"))
    assert first.event_id is not None
    assert states[first.event_id] == "quarantined"
    assert sorted(states.values()) == ["acknowledged"] * 21 + ["pending", "quarantined"]
    waiting = rows("SELECT last_error_code FROM outbox_deliveries WHERE status = 'pending'")
    assert waiting == [("revision_gap",)]
    assert verify().ok
