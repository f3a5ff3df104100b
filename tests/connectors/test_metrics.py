"""What connectors count: the contract of names and labels, each answer once, and no id in a label or a line."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from attachments.connectors import metrics
from attachments.connectors.authenticate import Reason
from attachments.connectors.metrics import Answered
from attachments.connectors.signature import Secret
from tests.commercial.make import subscribe
from tests.commercial.scan import found_in
from tests.connectors.conftest import PLAN
from tests.connectors.make import connector
from tests.connectors.provider import BODY, sign
from tests.observability.test_metrics import counted

pytestmark = [pytest.mark.spec("O33", "C4"), pytest.mark.usefixtures("closed")]
OTHER = BODY + b" "


@pytest.fixture
def closed(database: None) -> Iterator[None]:
    """The view gives its connections up, and this thread's go with the test."""
    yield
    connections.close_all()


def grown(before: dict[Any, float], name: str, label: str) -> dict[str, float]:
    """By how much each series of a counter grew."""
    now = counted(name)
    return {dict(key)[label]: now[key] - before[key] for key in now if now[key] != before[key]}


def send(connector_id: object, secret: Secret, webhook_id: str = "msg", body: bytes = BODY, ago: int = 0) -> int:
    """Deliver one event through this process's own view; the status of the answer."""
    seconds = int(time.time()) - ago
    answer = Client().post(
        f"/api/v1/connectors/{connector_id}/events",
        body,
        content_type="application/json",
        headers={
            "webhook-id": webhook_id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": sign(secret.text, webhook_id, seconds, body),
        },
    )
    return int(answer.status_code)


def test_the_contract_is_this_list_and_every_series_is_there_from_the_start() -> None:
    assert {(metric.name, str(metric.kind), metric.labels) for metric in metrics.METRICS} == {
        ("connectors_requests_total", "counter", ("outcome",)),
        ("connectors_auth_failed_total", "counter", ("reason",)),
    }
    assert {dict(labels)["outcome"] for labels in counted("connectors_requests_total")} == set(Answered)
    assert {dict(labels)["reason"] for labels in counted("connectors_auth_failed_total")} == set(Reason)


def test_every_answer_is_counted_once_and_no_line_holds_what_was_sent(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = connector(tenant=subscribe(limit=1, **PLAN).tenant_id)
    own, secret = made.connector_id, made.issued.secret
    answers, failures = counted("connectors_requests_total"), counted("connectors_auth_failed_total")
    external = "evt_external_8812_of_the_bank"
    assert [send(own, secret, external), send(own, secret, external), send(own, secret, external, OTHER)] == [
        200, 200, 409,
    ]  # fmt: skip
    assert send(own, secret, "another") == 429
    assert send(own, Secret.fresh()) == send(own, secret, ago=1000) == send(uuid.uuid4(), secret) == 401
    assert Client().post(f"/api/v1/connectors/{own}/events").status_code == 401
    assert send(own, secret, "a.b") == 401
    settings.CONNECTOR_MAX_BODY_BYTES = 1024
    assert send(own, secret, body=b"x" * 1025) == 413
    settings.CONNECTOR_SEALING_KEYS = ("another key of more than thirty-two characters",)
    assert send(own, secret) == 503
    assert grown(answers, "connectors_requests_total", "outcome") == {
        "accepted": 1, "replayed": 1, "conflicting": 1, "exceeded": 1, "rejected": 5, "too_large": 1, "unavailable": 1,
    }  # fmt: skip
    assert grown(failures, "connectors_auth_failed_total", "reason") == {
        "wrong_signature": 1, "outside_window": 1, "unknown_connector": 1, "missing_header": 1, "malformed_header": 1,
    }  # fmt: skip
    said = caplog.text
    assert "connector_payload_conflict" in said
    assert found_in(said, external, secret.text, "Hotel Baur au Lac") == []


def test_a_database_that_is_away_puts_an_event_off(monkeypatch: pytest.MonkeyPatch) -> None:
    made = connector(tenant=subscribe(**PLAN).tenant_id)
    for alias in ("billing", "attachments", "attachments.read"):
        connections[alias].close()
        with monkeypatch.context() as away:
            away.setitem(connections[alias].settings_dict, "PORT", 1)
            assert send(made.connector_id, made.issued.secret) == 503, alias
        connections[alias].close()
    assert send(made.connector_id, made.issued.secret) == 200


def test_the_document_of_the_api_tells_how_to_deliver() -> None:
    document = json.loads(Client().get("/api/v1/openapi.json").content)
    told = document["paths"]["/api/v1/connectors/{connector_id}/events"]["post"]
    assert set(told["responses"]) == {"200", "401", "409", "413", "429", "503"}
    assert set(told["responses"]["409"]["content"]) == {"application/problem+json"}
    named = {parameter["name"]: parameter for parameter in told["parameters"]}
    assert {"webhook-id", "webhook-timestamp", "webhook-signature"} <= set(named)
    assert "requestBody" in told
