"""The event envelope, and payload contracts that are found by their exact pair only."""

from typing import Any

import pytest

from outbox.contracts.canonical import NotCanonicalSafe
from outbox.contracts.contract import Contract, ContractViolation, Identifier
from outbox.contracts.envelope import (
    Envelope,
    UnknownEvent,
    decode_payload,
    event_payload,
    payload_contract,
    registered_payloads,
)
from outbox.contracts.examples import ENVELOPE
from tests.contracts.shapes import Line, Note, note
from tests.contracts.test_contract import changed

pytestmark = pytest.mark.spec("O3", "O5")


@pytest.mark.parametrize(
    "fields",
    [
        {"eventId": "01997a5e-8c00-4000-8000-000000000001"},
        {"eventId": "01997A5E-8C00-7000-8000-000000000001"},
        {"eventType": "run.created"},
        {"eventType": "run.created@latest"},
        {"eventSchemaVersion": 2},
        {"aggregateRevision": 0},
        {"aggregateRevision": "1"},
        {"aggregateRevision": 2**53},
        {"tenantKind": "robot"},
        {"projectId": None},
        {"causationId": ""},
        {"occurredAt": "2026-09-24T10:15:30Z"},
        {"occurredAt": "2026-09-24T10:15:30.000001+00:00"},
        {"payload": []},
        {"payload": None},
        {"payload": ...},
        {"trace": "x"},
    ],
)
def test_an_envelope_that_is_not_exact_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ContractViolation):
        Envelope.parse(changed(ENVELOPE.canonical(), **fields))


def test_a_payload_that_holds_a_sequence_travels_in_an_envelope() -> None:
    payload = note().wire()
    event = Envelope(**(dict(ENVELOPE) | {"payload": payload}))
    assert Envelope.parse(event.canonical()).payload == payload
    assert Note.from_wire(Envelope.parse(event.canonical()).payload) == note()


def test_an_envelope_class_with_a_typed_payload_reads_and_writes_the_same_bytes() -> None:
    class TypedEnvelope(Envelope):
        payload: Line  # type: ignore[assignment]  # the point of the test

    event = ENVELOPE.model_copy(update={"payload": {"count": 1, "name": "a"}})
    read = TypedEnvelope.parse(event.canonical())
    assert read.payload == Line(name="a", count=1)
    assert read.model_copy().canonical() == event.canonical()
    with pytest.raises(ContractViolation, match=r"payload\.count"):
        TypedEnvelope.parse(changed(event.canonical(), payload={"count": 1.5, "name": "a"}))


@pytest.mark.parametrize("bad", [1.5, float("nan"), 2**53, "a\x00", {"é": 1}])
def test_a_payload_without_canonical_form_gets_no_bytes(bad: Any) -> None:
    with pytest.raises(NotCanonicalSafe, match=r"\$\.payload\.x"):
        ENVELOPE.model_copy(update={"payload": {"x": bad}}).canonical()


def test_a_payload_contract_is_found_by_its_exact_pair_only() -> None:
    @event_payload("test.happened@1", "1")
    class Happened(Contract):
        who: Identifier

    try:
        assert payload_contract("test.happened@1", "1") is Happened
        for pair in (("test.happened@1", "1.0"), ("test.happened", "1"), ("test.*", "1"), ("test.happened@2", "2")):
            with pytest.raises(UnknownEvent):
                payload_contract(*pair)
        event_payload("test.happened@1", "1")(Happened)
        with pytest.raises(ValueError, match="already has the payload contract Happened"):
            event_payload("test.happened@1", "1")(Envelope)
        event = ENVELOPE.model_copy(
            update={"event_type": "test.happened@1", "event_schema_version": "1", "payload": {"who": "x"}}
        )
        assert decode_payload(event, Happened).who == "x"
        with pytest.raises(ContractViolation):
            decode_payload(event.model_copy(update={"payload": {"who": None}}), Happened)
        with pytest.raises(UnknownEvent):
            decode_payload(ENVELOPE.model_copy(update={"event_type": "test.other@1"}), Happened)
    finally:
        from outbox.contracts import envelope

        envelope._PAYLOADS.pop(("test.happened@1", "1"))
    assert ("test.happened@1", "1") not in registered_payloads()
