"""Who may see and change what, and when: the rules of 400, 403 and 404 (C5)."""

import uuid
from typing import Any

import pytest
import requests

from tests.claims.conftest import MakePerson, Web
from tests.claims.person import Person
from tests.commercial.make import states

pytestmark = pytest.mark.spec("C5")


def problem_of(answer: requests.Response) -> tuple[int, str]:
    """Status and type of a refusal."""
    told = answer.json()
    return told["status"], told["type"].removeprefix("urn:backbone:problem:")


def everything_below(person: Person) -> dict[tuple[str, str], dict[str, Any]]:
    """Every call about a claim of this person that has an item with an attachment."""
    claim = person.claim()
    item = person.item(claim)
    place = f"/claims/{claim}/items/{item}/attachments"
    attachment = person.upload(b"paper", to=place)
    file = {"files": {"file": ("a.pdf", b"other", "application/pdf")}}
    return {
        ("get", f"/claims/{claim}"): {},
        ("get", attachment): {},
        ("get", f"{attachment}/content"): {},
        ("patch", f"/claims/{claim}"): {"json": {"title": "Other"}},
        ("post", f"/claims/{claim}/items"): {"json": {"description": "Train", "amountMinor": 1, "currency": "CHF"}},
        ("patch", f"/claims/{claim}/items/{item}"): {"json": {"description": "Other"}},
        ("post", place): file,
        ("put", attachment): file,
        ("post", f"/claims/{claim}/submit"): {},
        ("delete", attachment): {},
        ("delete", f"/claims/{claim}/items/{item}"): {},
        ("delete", f"/claims/{claim}"): {},
    }


def test_claims_of_other_tenants_and_of_other_members_are_not_there(
    alice: Person, make_person: MakePerson, web: Web
) -> None:
    calls = everything_below(alice)
    before, counted = web.files(), states()
    strangers = make_person(name="mallory"), make_person(tenant=alice.tenant, name="bob")
    for stranger in strangers:
        for (method, path), sent in calls.items():
            assert problem_of(stranger.call(method, path, **sent)) == (404, "not-found"), (method, path)
        assert stranger.call("get", "/claims").json() == {"claims": [], "next": None}
    assert (web.files(), states()) == (before, counted)


def test_a_reviewer_reads_every_claim_of_the_tenant_and_changes_none(
    alice: Person, make_person: MakePerson, web: Web
) -> None:
    calls = everything_below(alice)
    reviewer = make_person(tenant=alice.tenant, name="rita", reviewer=True)
    before = web.files()
    for (method, path), sent in calls.items():
        answer = reviewer.call(method, path, **sent)
        if method == "get":
            assert answer.status_code == 200
        else:
            assert problem_of(answer) == (403, "forbidden"), (method, path)
    assert len(reviewer.call("get", "/claims").json()["claims"]) == 1
    assert web.files() == before


def test_a_submitted_claim_is_read_and_never_changed(alice: Person, web: Web) -> None:
    calls = everything_below(alice)
    (submit,) = (path for _, path in calls if path.endswith("/submit"))
    assert alice.call("post", submit).json()["state"] == "submitted"
    before, counted = web.files(), states()
    for (method, path), sent in calls.items():
        answer = alice.call(method, path, **sent)
        if method == "get":
            assert answer.status_code == 200
        else:
            assert problem_of(answer) == (400, "wrong-state"), (method, path)
    assert (web.files(), states()) == (before, counted)


def test_what_is_not_there_is_404_and_an_empty_claim_is_not_submitted(alice: Person) -> None:
    nobody, claim = str(uuid.uuid4()), alice.claim()
    item = alice.item(claim)
    for path in (
        f"/claims/{nobody}",
        f"/claims/{claim}/items/{item}/attachments/{nobody}",
        f"/claims/{claim}/items/{item}/attachments/{nobody}/content",
        "/claims/no-uuid",
    ):
        assert problem_of(alice.call("get", path)) == (404, "not-found"), path
    sent: dict[str, Any] = {"files": {"file": ("a.pdf", b"x", "application/pdf")}}
    for path in (f"/claims/{claim}/items/{nobody}/attachments", f"/claims/{nobody}/items/{item}/attachments"):
        assert problem_of(alice.call("post", path, **sent)) == (404, "not-found"), path
    elsewhere = alice.claim()
    assert problem_of(alice.call("get", f"/claims/{elsewhere}/items/{item}/attachments/{nobody}"))[0] == 404
    assert problem_of(alice.call("post", f"/claims/{elsewhere}/submit")) == (400, "wrong-state")


BAD: dict[str, object] = {
    "no-body": None,
    "no-json": b"{",
    "a-list": [],
    "empty": {},
    "an-empty-title": {"number": "1", "title": " "},
    "a-long-number": {"number": "1" * 65, "title": "t"},
    "a-nul": {"number": "1", "title": "a\x00b"},
    "half-a-pair": b'{"number": "1", "title": "\\ud800"}',
    "another-field": {"number": "1", "title": "t", "state": "submitted"},
    "a-number": {"number": 7, "title": "t"},
    "deep": b"[" * 5_000,
}


def test_a_claim_that_is_none_is_400_and_names_the_fault(alice: Person) -> None:
    for told, body in BAD.items():
        answer = (
            alice.call("post", "/claims", data=body, headers={"Content-Type": "application/json"})
            if body is None or isinstance(body, bytes)
            else alice.call("post", "/claims", json=body)
        )
        assert (*problem_of(answer), told) == (400, "invalid-request", told), answer.text
    for amount in (-1, 2**53, 1.5, "1", True):
        sent = {"description": "Hotel", "amountMinor": amount, "currency": "CHF"}
        answer = alice.call("post", f"/claims/{alice.claim()}/items", json=sent)
        assert problem_of(answer) == (400, "invalid-request"), amount
    assert problem_of(alice.call("post", "/claims", data=b"x" * 70_000)) == (413, "too-large")
    assert problem_of(alice.call("get", "/claims?limit=0")) == (400, "invalid-request")
    assert problem_of(alice.call("get", "/claims?before=x")) == (400, "invalid-request")
    answer = alice.call("put", "/claims")
    assert (problem_of(answer), answer.headers["Allow"]) == ((405, "method-not-allowed"), "GET, POST")


def test_a_number_is_taken_once_per_tenant(alice: Person, make_person: MakePerson) -> None:
    sent = {"number": "R-1", "title": "Trip"}
    assert alice.call("post", "/claims", json=sent).status_code == 201
    assert problem_of(alice.call("post", "/claims", json=sent)) == (409, "conflict")
    assert make_person(name="bob").call("post", "/claims", json=sent).status_code == 201


def test_claims_come_in_pages_newest_first_with_what_is_in_them(alice: Person) -> None:
    made = [alice.claim(title=f"Trip {number}") for number in range(5)]
    seen, before = [], ""
    while True:
        page = alice.call("get", f"/claims?limit=2{before}").json()
        seen += [claim["claimId"] for claim in page["claims"]]
        if page["next"] is None:
            break
        before = f"&before={page['next']}"
    assert seen == made[::-1]
    item = alice.item(made[0])
    alice.upload(b"paper", to=f"/claims/{made[0]}/items/{item}/attachments")
    whole = alice.call("get", f"/claims/{made[0]}").json()
    (read,) = whole["items"]
    assert (whole["title"], read["amountMinor"], read["currency"]) == ("Trip 0", 11800, "CHF")
    assert [one["sizeBytes"] for one in read["attachments"]] == [5]
