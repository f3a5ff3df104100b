"""`verify` beside running work reports nothing that is merely in flight, and nothing after everything legal."""

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from billing.commercial import hooks
from billing.commercial.subscriptions import end_subscription
from config.verify import quota
from config.verify.check import Violation
from tests.commercial.conftest import swept_now
from tests.commercial.make import AT, BUSINESS, operation, subscribe, usage
from tests.commercial.notes import Interrupted, write_note
from tests.upstream.threads import in_threads

pytestmark = [pytest.mark.usefixtures("business"), pytest.mark.spec("C2", "C9")]


def violations() -> list[Violation]:
    return [sample for check in quota.CHECKS for sample in check.run().samples]


def test_a_proof_beside_running_work_never_reports_what_is_in_flight() -> None:
    contract = subscribe(limit=1000)
    done = threading.Event()

    def work(worker: int) -> list[Violation]:
        for number in range(25):
            try:
                write_note(contract, f"{worker}-{number}", "text", request=f"{number % 5}", fails=number % 3 == 0)
            except (Interrupted, hooks.ReservationLost):
                continue
        done.set()
        return []

    def prove() -> list[Violation]:
        found = []
        while not done.is_set():
            found += violations()
            swept_now()
        return found

    calls: list[Callable[[], list[Violation]]] = [partial(work, worker) for worker in range(3)]
    assert in_threads([*calls, prove]) == [[], [], [], []]
    swept_now()
    assert violations() == []
    assert usage() > 0


def test_a_contract_that_ends_before_what_was_asked_for_is_no_violation() -> None:
    contract = subscribe()
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    end_subscription(subscription_id=contract.subscription_id, at=AT - timedelta(hours=1))
    assert violations() == []
