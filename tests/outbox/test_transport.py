"""The one door between owners."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connections

from outbox.contracts.contract import Contract, Identifier
from outbox.contracts.delivery import DeliveryRequest
from outbox.contracts.question import Question
from outbox.deliver import _request
from outbox.transport import AccessRefused, InProcess, NotBound, Pass, delivery_scope, scope_of
from tests.outbox.make import run_created
from tests.outbox.test_claim import HERE, claimer, connection

RECORDED: list[Any] = []


class Whole(Contract):
    """The identity that a caller holds."""

    receipt_id: Identifier
    event_id: Identifier


QUESTION = Question(
    name="test.readWhole", audience="tests", workloads=frozenset({"core.dispatcher"}), expected=Whole, answer=Whole
)
EXPECTED = Whole(receipt_id="r1", event_id="e1")


def answer(expected: Whole, *, caller: Pass) -> Whole:
    """What the question is bound to: it answers with what it was asked for, and remembers who asked."""
    RECORDED.append((expected, caller))
    return expected


@pytest.fixture
def door(settings: Any) -> InProcess:
    """The in-process door with the test's question bound."""
    settings.OUTBOX_ANSWERS = {**settings.OUTBOX_ANSWERS, QUESTION.name: "tests.outbox.test_transport.answer"}
    RECORDED.clear()
    return InProcess()


def good_pass() -> Pass:
    return Pass(workload="core.dispatcher", audience="tests", scope=scope_of(EXPECTED))


@pytest.mark.spec("O21")
def test_a_pass_for_exactly_this_identity_opens_the_door(door: InProcess) -> None:
    assert door.ask(QUESTION, expected=EXPECTED, access=good_pass()) == EXPECTED
    assert [(EXPECTED, good_pass())] == RECORDED


@pytest.mark.spec("O21")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"workload": "billing.dispatcher"}, "Workload"),
        ({"audience": "everybody"}, "audience"),
        ({"scope": scope_of(Whole(receipt_id="r1", event_id="e2"))}, "another scope"),
        ({"scope": ""}, "another scope"),
    ],
)
def test_a_pass_for_anything_else_opens_nothing(door: InProcess, change: dict[str, str], says: str) -> None:
    with pytest.raises(AccessRefused, match=says):
        door.ask(QUESTION, expected=EXPECTED, access=replace(good_pass(), **change))
    assert RECORDED == []


@pytest.mark.spec("O21")
def test_a_question_that_nobody_answers_says_where_to_bind_it() -> None:
    with pytest.raises(NotBound, match="OUTBOX_ANSWERS"):
        InProcess().ask(QUESTION, expected=EXPECTED, access=good_pass())


@pytest.fixture
def request_of_core(appended: Callable[..., None]) -> DeliveryRequest:
    """A request as the dispatcher of core makes it."""
    appended(run_created())
    [claimed] = claimer().claim(connection(), HERE).rows
    connections.close_all()
    return _request(claimed, "core")


@pytest.mark.spec("O20", "O21")
def test_a_delivery_needs_the_pass_of_its_own_producer_destination_and_bytes(request_of_core: DeliveryRequest) -> None:
    whole = [request_of_core]
    right = Pass(workload="core.dispatcher", audience=HERE, scope=delivery_scope(whole))
    other = request_of_core._replace(envelope_sha256="0" * 64)
    for access in (
        replace(right, workload="billing.dispatcher"),
        replace(right, audience="billing_settlement_catch_up"),
        replace(right, scope=delivery_scope([other])),
        replace(right, scope=delivery_scope([request_of_core, request_of_core])),
    ):
        with pytest.raises(AccessRefused):
            InProcess().deliver(whole, access=access)


@pytest.mark.spec("O1", "O20")
def test_a_dispatcher_cannot_deliver_what_its_owner_does_not_produce(request_of_core: DeliveryRequest) -> None:
    stolen = [request_of_core._replace(producer="billing")]
    access = Pass(workload="billing.dispatcher", audience=HERE, scope=delivery_scope(stolen))
    with pytest.raises(AccessRefused, match="does not produce"):
        InProcess().deliver(stolen, access=access)


@pytest.mark.spec("O20")
def test_one_batch_goes_from_one_producer_to_one_destination(request_of_core: DeliveryRequest) -> None:
    member = replace(request_of_core.member, destination="billing_settlement_catch_up")
    mixed = [request_of_core, request_of_core._replace(member=member)]
    access = Pass(workload="core.dispatcher", audience=HERE, scope=delivery_scope(mixed))
    with pytest.raises(ValueError, match="one destination"):
        InProcess().deliver(mixed, access=access)
