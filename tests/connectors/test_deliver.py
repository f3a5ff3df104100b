"""An event is accepted once and counted once; its repetition is answered as the first time; another payload is not."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.commercial.conftest import swept_now
from tests.commercial.make import markers, nothing_is_written, rows, states, usage, used_and_held
from tests.commercial.scan import commercial_text, found_in
from tests.connectors.conftest import MakeProvider
from tests.connectors.facts import bodies, conflicts, events
from tests.connectors.provider import BODY, Event, Provider

OTHER = BODY.replace(b"118.00", b"118.01")


@pytest.mark.spec("C3", "C4")
def test_the_first_delivery_stores_one_event_and_counts_one(provider: Provider) -> None:
    answer = provider.send()
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert (events(), usage(), used_and_held(), bodies()) == (1, 1, (1, 0), {BODY})
    assert states() == [("settled", 1, "completion")]
    stored = rows("SELECT event_id::text FROM financial_connector_events", alias="attachments.read")
    assert [(answer.json["eventId"],)] == stored
    counted = rows("SELECT tool, dimension, quantity_basis, quantity, provider_code FROM usage_meter_events")
    assert counted == [("connector", "financial.ingest", "events", 1, "bank_one")]


@pytest.mark.spec("C4")
def test_a_replay_is_answered_exactly_as_the_first_time_and_counts_nothing(provider: Provider) -> None:
    event = Event()
    first = provider.send(event, seconds=None)
    again = [provider.send(event) for _ in range(3)]
    assert {(answer.status, answer.body) for answer in again} == {(200, first.body)}
    assert [answer.told for answer in again] == [first.told] * 3
    assert (events(), usage(), used_and_held(), conflicts()) == (1, 1, (1, 0), 0)
    assert len(markers()) == 1


@pytest.mark.spec("C4")
def test_a_replay_is_answered_also_when_the_quota_is_used_up(make_provider: MakeProvider) -> None:
    provider, event = make_provider(limit=1), Event()
    first = provider.send(event)
    assert provider.send().status == 429
    assert provider.send(event).told == first.told
    assert (events(), usage()) == (1, 1)


@pytest.mark.spec("C4")
@pytest.mark.trap("F2", "M9")
def test_another_payload_under_a_known_id_conflicts_and_is_recorded_and_counts_nothing(provider: Provider) -> None:
    event = Event()
    first = provider.send(event)
    for _ in range(2):
        answer = provider.send(Event(event.webhook_id, OTHER))
        assert (answer.status, answer.problem) == (409, "conflict")
        assert b"118" not in answer.body
    assert provider.send(Event(event.webhook_id, BODY + b" ")).status == 409
    assert (events(), usage(), used_and_held(), bodies()) == (1, 1, (1, 0), {BODY})
    assert conflicts() == 2, "each payload stands once"
    assert provider.send(event).told == first.told
    assert len(states()) == 1


@pytest.mark.spec("C4")
def test_another_connector_may_use_the_same_id(make_provider: MakeProvider) -> None:
    one, other = make_provider(name="one"), make_provider(name="other")
    event = Event()
    answers = [provider.send(event) for provider in (one, other)]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].json["eventId"] != answers[1].json["eventId"]
    assert (events(), usage()) == (2, 2)


@pytest.mark.spec("C6")
def test_without_quota_nothing_is_stored_and_the_refusal_tells_no_number(make_provider: MakeProvider) -> None:
    provider = make_provider(limit=0)
    answer = provider.send()
    assert (answer.status, answer.problem) == (429, "quota-exceeded")
    assert set(answer.json) == {"type", "title", "status", "detail"}
    assert (events(), conflicts(), usage(), used_and_held(), markers()) == (0, 0, 0, (0, 0), [])


@pytest.mark.spec("C3", "C4")
def test_a_meter_in_another_unit_puts_events_off_before_anything_is_stored(make_provider: MakeProvider) -> None:
    provider = make_provider(basis="bytes")
    answer = provider.send()
    assert (answer.status, answer.problem) == (503, "unavailable")
    assert (events(), usage(), used_and_held(), markers()) == (0, 0, (0, 0), [])


@pytest.mark.spec("C8")
def test_without_a_meter_events_are_accepted_and_nothing_commercial_is_written(make_provider: MakeProvider) -> None:
    provider, event = make_provider(limit=None), Event()
    first = provider.send(event)
    assert (first.status, provider.send(event).told) == (200, first.told)
    assert provider.send(Event(event.webhook_id, OTHER)).status == 409
    assert (events(), conflicts(), nothing_is_written()) == (1, 1, True)


@pytest.mark.trap("F2")
def test_the_same_event_many_times_at_once_is_one_effect_and_one_answer(provider: Provider) -> None:
    event = Event()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: provider.send(event), range(8)))
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    assert (events(), usage(), used_and_held()) == (1, 1, (1, 0))


@pytest.mark.trap("F2", "M9")
@pytest.mark.parametrize("step", ["connectors.turn", "commercial.reserved", "connectors.stored"])
def test_whatever_comes_while_the_first_is_in_flight_waits_and_then_sees_it(provider: Provider, step: str) -> None:
    event, web = Event(), provider.web
    web.pause_at(step)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(provider.send, event)
        web.await_pause()
        same, other = pool.submit(provider.send, event), pool.submit(provider.send, Event(event.webhook_id, OTHER))
        assert provider.send().status == 200, "other events do not wait"
        web.go_on()
        assert (first.result().status, other.result().status) == (200, 409)
        assert same.result().told == first.result().told
    assert (events(), conflicts(), usage(), used_and_held()) == (2, 1, 2, (2, 0))


@pytest.mark.spec("C1", "C4")
@pytest.mark.trap("M7")
def test_fifty_events_at_once_on_a_quota_of_ten_are_exactly_ten(make_provider: MakeProvider) -> None:
    provider = make_provider(limit=10)
    sent = [Event(body=b'{"n":%d}' % number) for number in range(50)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(provider.send, sent))
    assert sorted(answer.status for answer in answers) == [200] * 10 + [429] * 40
    assert (events(), usage(), used_and_held()) == (10, 10, (10, 0))
    accepted = {event.body for event, answer in zip(sent, answers, strict=True) if answer.status == 200}
    assert bodies() == accepted
    assert swept_now().settled == 0


@pytest.mark.spec("C7")
def test_no_commercial_row_tells_what_was_delivered_by_whom_under_which_name(make_provider: MakeProvider) -> None:
    provider = make_provider(limit=2)
    external, correlation = "evt_external_8812_of_the_bank", "corr-4711-of-the-bank"
    body = json.dumps({"correlationId": correlation, "note": "Hotel Baur au Lac, two nights"}).encode()
    event = Event(external, body)
    for sent in (event, event, Event(external, body + b" "), Event(), Event()):
        provider.send(sent, x_correlation_id=correlation)
    assert (events(), usage(), conflicts()) == (2, 2, 1)
    text = commercial_text()
    assert "bank_one" in text
    secrets = (external, correlation, "Hotel Baur au Lac", "two nights", provider.connector_id, *provider.secrets)
    assert found_in(text, *secrets) == []
    digests = [
        digest for (digest,) in rows("SELECT body_sha256 FROM financial_connector_events", alias="attachments.read")
    ]
    assert found_in(text, *digests) == []
