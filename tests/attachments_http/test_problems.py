"""Refusals of the API that need no login."""

import json

import pytest
from django.test import Client

from attachments.http import people
from attachments.http.kinds import TITLES, Kind
from attachments.http.metrics import METRICS, Written
from attachments.http.problems import problem
from tests.observability.test_metrics import counted

pytestmark = [pytest.mark.spec("C6"), pytest.mark.usefixtures("database")]


def test_an_address_that_is_not_there_is_answered_with_a_problem_whatever_the_method() -> None:
    for method in ("get", "post", "delete", "put"):
        for path in ("/api/v1/nothing/here", "/api/v1/claims/no-uuid"):
            answer = getattr(Client(enforce_csrf_checks=True), method)(path)
            assert answer.status_code == 404
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert json.loads(answer.content)["type"] == "urn:backbone:problem:not-found"
    assert json.loads(Client().get("/api/v1/").content)["status"] == 404


def test_every_kind_has_its_own_status_and_is_counted() -> None:
    assert set(TITLES) == set(Kind)
    for kind in Kind:
        before = counted("api_problems_total")
        answer = problem(kind, "words", members={"limit": 7})
        told = json.loads(answer.content)
        assert (answer.status_code, told["status"], told["limit"]) == (*[TITLES[kind][0]] * 2, 7)
        assert answer.headers["Cache-Control"] == "no-store"
        after = counted("api_problems_total")
        assert {key: after[key] - before[key] for key in after if after[key] != before[key]} == {(("kind", kind),): 1}
    assert "Retry-After" in problem(Kind.UNAVAILABLE, "words").headers
    assert "WWW-Authenticate" in problem(Kind.NOT_AUTHENTICATED, "words").headers


def test_a_fault_tells_nothing_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a secret of the code")

    monkeypatch.setattr(people, "accepted_token", broken)
    answer = Client(raise_request_exception=False).get("/api/v1/me", headers={"Authorization": "Bearer abc"})
    assert (answer.status_code, json.loads(answer.content)["type"]) == (500, "urn:backbone:problem:internal")
    assert b"secret" not in answer.content


@pytest.mark.spec("O33")
def test_the_contract_of_metrics_is_this_list() -> None:
    assert {(metric.name, str(metric.kind), metric.labels) for metric in METRICS} == {
        ("api_problems_total", "counter", ("kind",)),
        ("api_attachments_total", "counter", ("kind",)),
    }
    assert {dict(key)["kind"] for key in counted("api_attachments_total")} == set(Written)


def test_the_document_says_what_there_is() -> None:
    answer = Client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    assert json.loads(answer.content)["openapi"].startswith("3.")
