"""Whoever shows no good signature learns nothing: not which part was wrong, nor whether the connector exists (C4)."""

import time
import uuid
from collections.abc import Callable

import pytest

from tests.commercial.make import markers, nothing_is_written, rows
from tests.connectors.conftest import connectors
from tests.connectors.facts import conflicts, events
from tests.connectors.provider import Answer, Event, Provider

STRANGER = "whsec_" + "A" * 44

WAYS: dict[str, Callable[[Provider], Answer]] = {
    "unknown connector": lambda own: Provider(own.web, str(uuid.uuid4()), own.secrets).send(),
    "no uuid": lambda own: Provider(own.web, "nothing", own.secrets).send(),
    "another form of the uuid": lambda own: Provider(own.web, own.connector_id.upper(), own.secrets).send(),
    "U+0000": lambda own: Provider(own.web, "%00", own.secrets).send(),
    "another secret": lambda own: own.with_secrets(STRANGER).send(),
    "no id": lambda own: own.send(webhook_id=None),
    "no timestamp": lambda own: own.send(webhook_timestamp=None),
    "no signature": lambda own: own.send(webhook_signature=None),
    "a timestamp that is none": lambda own: own.send(webhook_timestamp="now"),
    "an id that is none": lambda own: own.send(webhook_id="a.b"),
    "too late": lambda own: own.send(seconds=int(time.time()) - 1000),
    "an empty body that nobody signed": lambda own: own.web.request("POST", own.path),
}


@pytest.mark.spec("C4")
def test_every_way_in_which_a_request_is_not_let_in_is_answered_alike_and_leaves_nothing(provider: Provider) -> None:
    answers = {name: way(provider) for name, way in WAYS.items()}
    connectors("revoke", provider.connector_id, "--all")
    answers["every secret revoked"] = provider.send()
    first = answers["another secret"]
    assert (first.status, first.problem) == (401, "not-authenticated")
    assert "www-authenticate" in first.headers
    for name, answer in answers.items():
        assert answer.told == first.told, name
    assert (events(), conflicts(), nothing_is_written(), markers()) == (0, 0, True, [])
    for secret in (provider.connector_id, provider.secrets[0], STRANGER, "msg_"):
        assert secret.encode() not in first.body


@pytest.mark.spec("C4")
def test_a_known_event_tells_nothing_to_who_cannot_sign_it(provider: Provider) -> None:
    event = Event()
    assert provider.send(event).status == 200
    stranger = provider.with_secrets(STRANGER)
    other = Event(event.webhook_id, b"another payload")
    assert stranger.send(event).told == stranger.send(other).told == stranger.send().told
    assert (events(), conflicts()) == (1, 0)


@pytest.mark.spec("C4")
def test_the_tenant_comes_from_the_configuration_alone(provider: Provider) -> None:
    """Headers and payload may say what they like."""
    body = b'{"tenantId":"org:somebody-else","tenant_id":"org:somebody-else"}'
    answer = provider.send(Event(body=body), x_tenant_id="org:somebody-else", x_organization_id="org:somebody-else")
    assert answer.status == 200
    counted = rows(
        "SELECT p.tenant_id FROM usage_meter_events u JOIN commercial_entitlement_periods p USING (period_id)"
    )
    configured = rows(
        "SELECT tenant_kind || ':' || tenant_id FROM financial_connectors", alias="attachments.read"
    )  # fmt: skip
    assert counted == configured
    assert "somebody-else" not in counted[0][0]


def test_other_methods_and_addresses_are_problems_and_never_redirects(provider: Provider) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        answer = provider.web.request(method, provider.path)
        assert (answer.status, answer.headers["content-type"]) == (405, "application/problem+json"), method
    for path in (f"{provider.path}/", provider.path.removesuffix("/events"), "/api/v1/connectors/"):
        answer = provider.web.request("POST", path)
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json"), path
