"""Refusals of the API that need no login."""

import json

import pytest
from django.test import Client

pytestmark = [pytest.mark.spec("C6"), pytest.mark.usefixtures("database")]


def test_an_address_that_is_not_there_is_answered_with_a_problem_whatever_the_method() -> None:
    for method in ("get", "post", "delete", "put"):
        answer = getattr(Client(enforce_csrf_checks=True), method)("/api/v1/nothing/here")
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert json.loads(answer.content)["type"] == "urn:backbone:problem:not-found"


def test_the_document_says_what_there_is() -> None:
    answer = Client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    assert json.loads(answer.content)["openapi"].startswith("3.")
