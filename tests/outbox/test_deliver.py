"""What a dispatcher accepts, and what it makes of everything else."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from outbox.accept import _as_expected, accept
from outbox.contracts.ack import BillingSettlementCaughtUp, OperationsProjectionApplied
from outbox.contracts.contract import ContentReference
from outbox.contracts.delivery import Acknowledged, DeliveryRequest, NonRetryable, Retryable, RetryClass
from outbox.deliver import _request
from outbox.dispatch import Dispatcher
from tests.outbox.conftest import FarSide, acknowledge, receipt_for, rows
from tests.outbox.make import admission, run_created
from tests.outbox.test_claim import HERE, claimer, connection

STATE = "SELECT status, last_error_code FROM outbox_deliveries"


@pytest.mark.spec("O18", "O20")
def test_a_proven_acknowledgement_completes_the_delivery_and_publishes_the_event(
    dispatcher: Dispatcher, appended: Callable[..., None]
) -> None:
    appended(*admission("a"))
    drained = dispatcher.drain()
    assert (drained.claimed, drained.acknowledged) == (2, 2)
    assert rows("SELECT DISTINCT status, ack_receipt_type FROM outbox_deliveries") == [
        ("acknowledged", "OperationsProjectionAppliedReceipt")
    ]
    assert rows("SELECT count(*) FROM outbox_events WHERE published_at IS NOT NULL") == [(2,)]
    assert rows("SELECT outcome, retry_disposition, count(*) FROM outbox_delivery_attempt_finishes GROUP BY 1, 2") == [
        ("acknowledged", "complete", 2)
    ]


@pytest.mark.spec("O3", "O20")
def test_the_consumer_gets_the_exact_stored_bytes_and_the_frozen_member(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None]
) -> None:
    appended(run_created(name="a"))
    dispatcher.drain()
    [[request]] = far_side.seen
    [(text, digest)] = rows("SELECT event_envelope, event_envelope_sha256 FROM outbox_events")
    assert (request.envelope, request.envelope_sha256) == (text.encode(), digest)
    assert (request.member.projection_name, request.member.projection_version) == ("operations", "1")
    assert request.member.definition.ref == "2026.1"


def _other(request: DeliveryRequest) -> ContentReference:
    return receipt_for(request, ref="another").reference


def _forged(request: DeliveryRequest) -> Acknowledged:
    good = acknowledge(request)
    return Acknowledged(good.ack, good.receipt.replace(b'"projectionVersion":"1"', b'"projectionVersion":"9"'))


WRONG: dict[str, Callable[[DeliveryRequest], Acknowledged]] = {
    "another event": lambda r: acknowledge(r, ack={"event_id": str(uuid.uuid4())}),
    "another envelope digest": lambda r: acknowledge(r, ack={"event_envelope_sha256": "0" * 64}),
    "another destination": lambda r: acknowledge(r, ack={"destination": "billing_settlement_catch_up"}),
    "another consumer": lambda r: acknowledge(r, ack={"consumer_name": "metering_input_processor_consumer"}),
    "another branch of the union": lambda r: acknowledge(
        r,
        ack={
            "applied_receipt": BillingSettlementCaughtUp(
                billing_settlement_catch_up_consumer_receipt=receipt_for(r).reference
            )
        },
    ),
    "the four-tuple of another receipt": lambda r: acknowledge(
        r, ack={"applied_receipt": OperationsProjectionApplied(operations_projection_applied_receipt=_other(r))}
    ),
    "a receipt for another event": lambda r: acknowledge(r, receipt={"event_id": str(uuid.uuid4())}),
    "a receipt for another envelope": lambda r: acknowledge(r, receipt={"event_envelope_sha256": "0" * 64}),
    "a receipt for another event type": lambda r: acknowledge(r, receipt={"event_type": "wallet.reserved@1.0"}),
    "a receipt of another projection": lambda r: acknowledge(r, receipt={"projection_name": "shadow"}),
    "a receipt of another projection version": lambda r: acknowledge(r, receipt={"projection_version": "2"}),
    "a forged receipt body": _forged,
    "no receipt at all": lambda r: Acknowledged(acknowledge(r).ack, b""),
    "garbage for a receipt": lambda r: Acknowledged(acknowledge(r).ack, b"\xff{"),
}


@pytest.mark.spec("O20", "O21")
@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG.keys())
def test_an_acknowledgement_that_proves_something_else_is_refused_and_tried_again(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None], answer: Any
) -> None:
    appended(run_created())
    far_side.answer = answer
    dispatcher.drain(until=None)
    assert rows(STATE) == [("pending", "ack_rejected")]
    assert rows("SELECT count(*) FROM outbox_events WHERE published_at IS NOT NULL") == [(0,)]
    assert rows("SELECT count(*) FROM outbox_quarantine") == [(0,)]
    assert rows("SELECT DISTINCT outcome, retry_disposition FROM outbox_delivery_attempt_finishes") == [
        ("retryable", "retry")
    ]


@pytest.mark.spec("O20", "O31")
def test_what_can_not_be_applied_goes_into_quarantine_with_its_evidence(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None]
) -> None:
    appended(run_created())
    far_side.answer = lambda _: NonRetryable("unknown_schema", "no such version")
    assert dispatcher.drain().quarantined == 1
    assert rows("SELECT status FROM outbox_deliveries") == [("quarantined",)]
    assert rows(
        "SELECT q.reason, q.event_type, q.event_envelope_sha256 = e.event_envelope_sha256, q.case_id"
        " FROM outbox_quarantine q JOIN outbox_events e USING (event_id)"
    ) == [("unknown_schema", "run.created@2.0", True, None)]
    assert dispatcher.drain().claimed == 0


@pytest.mark.spec("O30")
def test_a_retry_comes_back_after_the_delay_of_its_class(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None]
) -> None:
    appended(run_created())
    far_side.answer = lambda _: Retryable(RetryClass.WAITING_PREDECESSOR, "revision_gap")
    dispatcher.drain()
    [(status, code, later, attempts)] = rows(
        "SELECT status, last_error_code, available_at > last_attempt_at, attempt_count FROM outbox_deliveries"
    )
    assert (status, code, later, attempts) == ("pending", "revision_gap", True, 1)


@pytest.mark.spec("O30")
@pytest.mark.trap("D9")
def test_a_destination_that_is_down_costs_no_event_its_budget(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None], settings: Any
) -> None:
    settings.OUTBOX_RETRY = {
        **settings.OUTBOX_RETRY,
        "transient": {"base": 0.05, "factor": 1, "cap": 0.05, "quarantine_after": 2},
    }
    appended(run_created())
    far_side.raises = OperationalError("the server is gone")
    _drain_until(dispatcher, lambda: rows("SELECT attempt_count >= 4 FROM outbox_deliveries") == [(True,)])
    assert rows(STATE) == [("pending", "transport_unreachable")]
    far_side.raises = None
    _drain_until(dispatcher, lambda: rows("SELECT status FROM outbox_deliveries") == [("acknowledged",)])


@pytest.mark.spec("O30", "O31")
def test_a_class_that_may_quarantine_does_so_after_its_attempts_and_says_why(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None], settings: Any
) -> None:
    settings.OUTBOX_RETRY = {
        **settings.OUTBOX_RETRY,
        "transient": {"base": 0.05, "factor": 1, "cap": 0.05, "quarantine_after": 3},
    }
    appended(run_created())
    far_side.raises = ValueError("the event upsets the consumer")
    _drain_until(dispatcher, lambda: rows("SELECT status FROM outbox_deliveries") == [("quarantined",)])
    assert rows("SELECT reason, detail FROM outbox_quarantine") == [
        ("attempts_exhausted", "raised_valueerror: the event upsets the consumer")
    ]
    assert rows("SELECT attempt_count FROM outbox_deliveries") == [(3,)]
    assert rows("SELECT outcome, retry_disposition FROM outbox_delivery_attempt_finishes ORDER BY finished_at") == [
        ("retryable", "retry"),
        ("retryable", "retry"),
        ("retryable", "quarantine"),
    ]


@pytest.mark.trap("D10")
@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "x" * 1_000_000, "line\nline\x1b[31m"])
def test_any_exception_text_still_leaves_a_finish(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None], text: str
) -> None:
    appended(run_created())
    far_side.raises = RuntimeError(text)
    dispatcher.drain()
    [(code, detail)] = rows("SELECT normalized_error_code, sanitized_error_ref FROM outbox_delivery_attempt_finishes")
    assert code == "raised_runtimeerror"
    assert len(detail) <= 1000
    assert detail.isprintable()


@pytest.mark.spec("O20")
def test_a_destination_without_a_bound_consumer_is_not_claimed(
    database: None, far_side: FarSide, appended: Callable[..., None]
) -> None:
    from config.owners import owner_named

    with Dispatcher(owner_named("metering"), deliver_through=far_side) as dispatcher:
        assert dispatcher.drain().claimed == 0
    assert far_side.seen == []


def _drain_until(dispatcher: Dispatcher, reached: Callable[[], bool]) -> None:
    for _ in range(2000):
        dispatcher.drain()
        if reached():
            return
    raise AssertionError(rows(STATE))


@pytest.mark.spec("O20", "O21")
def test_an_expected_receipt_is_accepted_by_its_bytes_and_anything_else_is_not(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None]
) -> None:
    appended(run_created())
    [claimed] = claimer().claim(connection(), HERE).rows
    request = _request(claimed, "core")
    good = acknowledge(request)
    assert _as_expected(claimed, good) == good.ack.applied_receipt.receipt == accept(claimed, good)
    other_digest = claimed._replace(envelope_sha256="0" * 64)
    assert _as_expected(other_digest, good) is None
    for answer in WRONG.values():
        assert _as_expected(claimed, answer(request)) is None
    for body in (good.receipt + b" ", good.receipt.replace(b"2026-01-01T", b"2026-01-01t"), good.receipt[:-1]):
        assert _as_expected(claimed, Acknowledged(good.ack, body)) is None
