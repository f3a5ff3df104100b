"""The raw bytes decide, within the window, by the same rules as the Standard Webhooks library (C4, F1)."""

import base64
import time
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from attachments.connectors.errors import InvalidSecret
from attachments.connectors.signature import MOST_SIGNATURES, TOLERANCE, Secret, Signed, read_signed
from tests.connectors.conftest import connectors, said_secret
from tests.connectors.facts import bodies, events
from tests.connectors.provider import BODY, Event, Provider, sign

RAW = {
    "odd spacing": b'{ "amount" :\t1,\r\n"b":[ ]\n}\n',
    "another order of keys": b'{"b":[],"amount":1}',
    "with a byte order mark": b'\xef\xbb\xbf{"amount":1}',
    "empty": b"",
    "not text": bytes(range(256)),
    "with full stops": b"1.2.3",
    "not JSON": b"amount=1&b=%00",
}
HEADERS = ("webhook_id", "webhook_timestamp", "webhook_signature")
SECRET = Secret(bytes(range(32)))


@pytest.mark.trap("F1")
def test_whatever_bytes_were_signed_are_accepted_and_kept_as_they_came(provider: Provider) -> None:
    for name, body in RAW.items():
        assert provider.send(Event(body=body)).status == 200, name
    assert (events(), bodies()) == (len(RAW), set(RAW.values()))


@pytest.mark.trap("F1")
def test_the_same_meaning_in_other_bytes_is_not_what_was_signed(provider: Provider) -> None:
    event = Event(body=b'{"a": 1, "b": 2}')
    headers = provider.headers(event)
    forged = (b'{"b": 2, "a": 1}', b'{"a":1,"b":2}', b"\xef\xbb\xbf" + event.body, event.body + b"\n", b"")
    for body in forged:
        assert provider.web.request("POST", provider.path, body, headers).status == 401
    assert provider.web.request("POST", provider.path, event.body, headers).status == 200
    assert events() == 1


@pytest.mark.trap("F1")
@pytest.mark.parametrize(
    ("offset", "status"), [(-301, 401), (-290, 200), (290, 200), (310, 401), (-3600, 401), (10**9, 401)]
)
def test_the_clocks_may_be_apart_by_the_tolerance(provider: Provider, offset: int, status: int) -> None:
    assert provider.send(seconds=int(time.time()) + offset).status == status


@pytest.mark.trap("F1")
def test_the_window_is_exact() -> None:
    sent = Signed("msg", 1_700_000_000, b"")
    for away in (TOLERANCE, -TOLERANCE):
        assert sent.is_near(sent.sent_at + away)
        assert not sent.is_near(sent.sent_at + away + (away / abs(away.total_seconds()) / 10**6))
    assert timedelta(seconds=300) == TOLERANCE


@pytest.mark.trap("F1")
def test_a_signature_is_good_for_its_id_and_its_timestamp_alone(provider: Provider) -> None:
    event, now = Event(), int(time.time())
    headers = provider.headers(event, seconds=now)
    for changed in ({"webhook-id": "msg_other"}, {"webhook-timestamp": str(now - 1)}):
        assert provider.web.request("POST", provider.path, event.body, headers | changed).status == 401
    split = Event(event.webhook_id, f"{now}.{event.body.decode()}".encode())
    moved = provider.headers(split, seconds=now) | {"webhook-id": f"{split.webhook_id}.{now}"}
    assert provider.web.request("POST", provider.path, event.body, moved).status == 401, "an id holds no full stop"
    assert events() == 0


@pytest.mark.spec("C4")
def test_one_good_signature_among_others_is_enough(provider: Provider) -> None:
    event, now = Event(), int(time.time())
    good = sign(provider.secrets[0], event.webhook_id, now, event.body)
    wrong = sign(SECRET.text, event.webhook_id, now, event.body)
    asymmetric = "v1a," + base64.b64encode(bytes(64)).decode()
    for header in (f"{wrong} {good}", f"{asymmetric} {good} {wrong}", f"v1,%%% , nothing v2 {good}"):
        assert provider.send(event, seconds=now, webhook_signature=header).status == 200, header
    for header in (wrong, asymmetric, good.replace("v1,", "v2,"), good.replace("v1,", "v1, "), good[3:], "v1,", ","):
        assert provider.send(event, seconds=now, webhook_signature=header).status == 401, header
    many = " ".join([wrong] * MOST_SIGNATURES + [good])
    assert provider.send(event, seconds=now, webhook_signature=many).status == 401
    assert events() == 1


@pytest.mark.spec("C4")
@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("value", [None, "", " ", "a b", "\xe9", "0", "-1", "1e9", "1700000000.5", "x" * 300, "a.b"])
def test_a_header_that_is_missing_or_malformed_opens_nothing(header: str, value: str | None) -> None:
    signed = {"webhook_id": "msg", "webhook_timestamp": "1700000000", "webhook_signature": "v1,AAAA"}
    assert read_signed(webhook_id="msg", timestamp="1700000000", signature="v1,AAAA", body=b"") == Signed(
        "msg", 1_700_000_000, b"", (b"\0\0\0",)
    )
    signed[header] = value or ""
    found = read_signed(
        webhook_id=signed["webhook_id"], timestamp=signed["webhook_timestamp"],
        signature=signed["webhook_signature"], body=b"",
    )  # fmt: skip
    fits = header == "webhook_id" and value in {"0", "-1", "1e9"}
    assert (found is None or not found.signatures) is not fits


@pytest.mark.parametrize("text", ["v1,AAAA", ""])
def test_an_attempt_without_a_good_signature_is_signed_with_nothing(text: str) -> None:
    found = read_signed(webhook_id="msg", timestamp="1700000000", signature=text, body=b"")
    assert found is not None
    assert not found.is_signed_with(SECRET)


def test_what_the_library_signs_we_accept_and_what_we_refuse_it_refuses() -> None:
    peer, now = Webhook(SECRET.text), datetime.now(UTC)
    good = peer.sign("msg", now, BODY.decode())
    for signature, body in ((good, BODY), (good, BODY + b" "), (f"v1,AAAA {good}", BODY), ("v1,AAAA", BODY)):
        headers = {"webhook-id": "msg", "webhook-signature": signature, "webhook-timestamp": str(int(now.timestamp()))}
        try:
            peer.verify(body, headers)
            theirs = True
        except WebhookVerificationError:
            theirs = False
        ours = read_signed(
            webhook_id="msg", timestamp=headers["webhook-timestamp"], signature=signature, body=body
        )  # fmt: skip
        assert ours is not None
        assert ours.is_signed_with(SECRET) is theirs


@pytest.mark.spec("C4")
def test_a_secret_has_the_form_of_the_specification_and_never_shows_itself() -> None:
    fresh = Secret.fresh()
    assert fresh.text.startswith("whsec_")
    assert len(base64.b64decode(fresh.text[6:])) == 32
    assert Secret.read(fresh.text) == fresh
    assert fresh.text[6:20] not in repr(fresh)
    for size in (24, 64):
        assert len(Secret.read("whsec_" + base64.b64encode(bytes(size)).decode()).data) == size
    wrong = [bytes(23), bytes(65), b""]
    texts = ["whsec_" + base64.b64encode(data).decode() for data in wrong]
    for text in (*texts, fresh.text[6:], fresh.text.upper(), fresh.text + "é", fresh.text[:-2] + "!!", ""):
        with pytest.raises(InvalidSecret) as refused:
            Secret.read(text)
        assert len(text) < 10 or text not in str(refused.value)


def test_a_command_prints_a_secret_that_the_library_takes(provider: Provider) -> None:
    secret = said_secret(connectors("rotate", provider.connector_id))
    assert Webhook(secret).sign("msg", datetime.now(UTC), "").startswith("v1,")
