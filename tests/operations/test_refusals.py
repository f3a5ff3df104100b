"""Events that can never be applied get a verdict of their own, and change nothing."""

from typing import Any

import pytest

from operations.projector.consumer import consume
from outbox.contracts.canonical import sha256_hex
from outbox.contracts.contract import ContentReference
from outbox.contracts.delivery import Acknowledged, DeliveryRequest, NonRetryable
from tests.operations.make import (
    MEMBERS,
    acknowledged,
    admission,
    apply,
    changed,
    delivery,
    new_event_id,
    one,
    state_of_projection,
)

FORGED = "f" * 64


def _with_bytes(request: DeliveryRequest, data: bytes) -> dict[str, Any]:
    return {"envelope": data, "envelope_sha256": sha256_hex(data)}


def _refused(code: str) -> dict[str, DeliveryRequest]:
    run, wallet = admission().run, admission().wallet
    text = run.canonical()
    cases: dict[str, DeliveryRequest] = {
        "digest_mismatch": delivery(run, envelope_sha256=FORGED),
        "unknown_digest_algorithm": delivery(run, digest_algorithm_version="sha512-v1"),
        "unknown_event/type": delivery(run, member={"event_type": "run.invented@1", "event_schema_version": "1"}),
        "unknown_event/version": delivery(run, member={"event_schema_version": "2.1"}),
        "unknown_event/prefix": delivery(run, member={"event_type": "run.created"}),
        "unknown_projection/version": delivery(run, member={"projection_version": "2"}),
        "unknown_projection/name": delivery(run, member={"projection_name": "shadow"}),
        "unknown_projection/none": delivery(run, member={"projection_name": None, "projection_version": None}),
        "schema_rejected/spacing": delivery(run, **_with_bytes(delivery(run), text.replace(b'":"', b'": "', 1))),
        "schema_rejected/not json": delivery(run, **_with_bytes(delivery(run), b"{")),
        "schema_rejected/duplicate key": delivery(
            run, **_with_bytes(delivery(run), text.replace(b'{"aggregateId"', b'{"aggregateId":"x","aggregateId"', 1))
        ),
        "schema_rejected/extra field": delivery(changed(run, payload={"surplus": "x"})),
        "schema_rejected/missing field": delivery(
            run, **_with_bytes(delivery(run), changed(run, payload={"runId": None}).canonical())
        ),
        "schema_rejected/other payload": delivery(changed(run, event_type="wallet.reserved@2.0")),
        "producer_mismatch": delivery(run, producer="billing"),
        "request_mismatch/event": delivery(run, event_id=new_event_id()),
        "request_mismatch/aggregate": delivery(run, aggregate_id="run:another"),
        "request_mismatch/revision": delivery(run, aggregate_revision=2),
        "member_mismatch/destination": delivery(run, member={"destination": "metering_input_processor"}),
        "member_mismatch/consumer": delivery(run, member={"consumer_name": "somebody_else"}),
        "member_mismatch/receipt": delivery(run, member={"expected_receipt_type": "AnotherReceipt"}),
        "member_mismatch/receipt version": delivery(run, member={"expected_receipt_schema_version": "2"}),
        "payload_contradicts_envelope/run": delivery(changed(run, payload={"runId": "run:another"})),
        "payload_contradicts_envelope/reservation": delivery(
            changed(wallet, payload={"billingReservationId": "reservation:another"})
        ),
    }
    return {name: request for name, request in cases.items() if name.partition("/")[0] == code}


@pytest.mark.spec("O20", "O26")
@pytest.mark.parametrize(
    "code",
    [
        "digest_mismatch",
        "unknown_digest_algorithm",
        "unknown_event",
        "unknown_projection",
        "schema_rejected",
        "producer_mismatch",
        "request_mismatch",
        "member_mismatch",
        "payload_contradicts_envelope",
    ],
)
def test_what_can_never_be_applied_is_refused_with_its_reason_and_leaves_nothing(database: None, code: str) -> None:
    cases = _refused(code)
    assert cases
    before = state_of_projection()
    for name, request in cases.items():
        (verdict,) = apply(request)
        assert isinstance(verdict, NonRetryable), name
        assert verdict.code == code, name
    assert state_of_projection() == before
    assert one("SELECT count(*) FROM projection_aggregates") == 0


@pytest.mark.spec("O20")
@pytest.mark.trap("D8")
def test_a_poison_event_first_in_a_batch_holds_none_of_its_neighbours(database: None) -> None:
    poison = delivery(admission().run, envelope_sha256=FORGED)
    neighbours = [request for _ in range(5) for request in admission().requests]
    verdicts = apply(poison, *neighbours)
    assert isinstance(verdicts[0], NonRetryable)
    acknowledged(verdicts[1:])


@pytest.mark.spec("O26")
@pytest.mark.trap("D8")
def test_an_event_that_only_the_database_refuses_undoes_nobody_else(database: None) -> None:
    first = admission()
    acknowledged(apply(*first.requests))
    usurper = admission(operation_id=first.operation_id)
    neighbours = [request for _ in range(20) for request in admission().requests]
    verdicts = apply(delivery(usurper.run), *neighbours)
    assert isinstance(verdicts[0], NonRetryable)
    assert verdicts[0].code == "operation_conflict"
    acknowledged(verdicts[1:])
    assert one("SELECT run_id FROM operation_summaries WHERE operation_id = %s", first.operation_id) == (
        first.run.aggregate_id
    )
    assert one("SELECT count(*) FROM operations_projection_applied_receipts") == 2 + 40


@pytest.mark.spec("O26")
@pytest.mark.trap("D12")
def test_the_same_event_id_with_another_digest_is_refused_and_overwrites_nothing(database: None) -> None:
    pair = admission()
    acknowledged(apply(*pair.requests))
    before = state_of_projection()
    forged = changed(pair.run, correlation_id="another")
    elsewhere = changed(admission().run, event_id=pair.run.event_id)
    for envelope in (forged, elsewhere):
        (verdict,) = apply(delivery(envelope))
        assert isinstance(verdict, NonRetryable)
        assert verdict.code == "event_conflict"
    assert state_of_projection() == before


@pytest.mark.spec("O26")
@pytest.mark.trap("D12")
def test_of_two_digests_of_one_event_id_in_one_batch_the_first_is_applied_and_the_second_refused(
    database: None,
) -> None:
    run = admission().run
    verdicts = apply(delivery(run), delivery(changed(run, correlation_id="another")), delivery(run))
    assert isinstance(verdicts[0], Acknowledged)
    assert isinstance(verdicts[1], NonRetryable)
    assert verdicts[1].code == "event_conflict"
    assert isinstance(verdicts[2], Acknowledged)
    assert verdicts[2].receipt == verdicts[0].receipt


@pytest.mark.spec("O21")
def test_the_same_event_under_another_definition_is_a_conflict(database: None) -> None:
    run = admission().run
    acknowledged(apply(delivery(run)))
    reference = MEMBERS["run.created@2.0"].definition
    other = ContentReference(ref=reference.ref, schema_version=reference.schema_version, digest=FORGED)
    (verdict,) = apply(delivery(run, member={"definition": other}))
    assert isinstance(verdict, NonRetryable)
    assert verdict.code == "event_conflict"


@pytest.mark.spec("O26")
def test_another_event_at_an_applied_revision_is_refused(database: None) -> None:
    run = admission().run
    acknowledged(apply(delivery(run)))
    (verdict,) = apply(delivery(changed(run, event_id=new_event_id())))
    assert isinstance(verdict, NonRetryable)
    assert verdict.code == "revision_conflict"


def test_an_empty_batch_is_an_empty_answer(database: None) -> None:
    assert consume([]) == []
