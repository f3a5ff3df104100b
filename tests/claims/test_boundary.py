"""Where billing, its configuration or the disk say no, nothing is touched; commercial facts tell nothing (C6, C7)."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from attachments.claims.upload import TENANTS
from config.databases import address_of
from config.owners import owner_named
from tests.claims.conftest import PLAN, MakePerson, Web
from tests.claims.person import Person
from tests.commercial.make import states, subscribe, usage, used_and_held
from tests.commercial.scan import commercial_text, found_in

pytestmark = pytest.mark.spec("C5", "C6")


@contextmanager
def billing_away() -> Iterator[None]:
    """Nobody can log in as the owner of billing."""
    address = address_of(owner_named("billing"))
    login = {"host": address.host, "port": address.port, "user": address.user, "password": address.password}
    with psycopg.connect(**login, dbname="postgres", autocommit=True) as server:  # type: ignore[arg-type]  # libpq options
        server.execute("ALTER ROLE billing_owner NOLOGIN")
        try:
            yield
        finally:
            server.execute("ALTER ROLE billing_owner LOGIN")


def test_while_billing_is_away_uploads_are_503_nothing_is_touched_and_deletions_go_on(alice: Person, web: Web) -> None:
    place = alice.place()
    attachment, other = alice.upload(b"old", to=place), alice.upload(b"other", to=place)
    before = web.files()
    with billing_away():
        for answer in (alice.send(b"newer", to=place), alice.send(b"newer", to=attachment, method="put")):
            assert (answer.status_code, answer.json()["type"]) == (503, "urn:backbone:problem:unavailable")
            assert int(answer.headers["Retry-After"]) > 0
        assert (web.files(), web.incoming()) == (before, [])
        assert alice.call("delete", other).status_code == 204
    assert list(web.files().values()) == [b"old"]
    assert alice.send(b"newer", to=attachment, method="put").status_code == 200
    assert (usage(), used_and_held()) == (13, (13, 0))


def test_a_meter_in_another_unit_is_refused_before_anything_is_touched(make_person: MakePerson, web: Web) -> None:
    contract = subscribe(limit=1000, **PLAN | {"basis": "events"})
    alice = make_person(tenant=f"organization:{contract.tenant_id}")
    answer = alice.send(b"paper", to=alice.place())
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:backbone:problem:misconfigured")
    assert (web.files(), web.incoming(), states()) == ({}, [], [])


@pytest.mark.trap("F7")
def test_a_tree_that_refuses_is_503_the_old_file_stands_and_quota_is_given_back(alice: Person, web: Web) -> None:
    place = alice.place()
    folder = web.root / str(uuid.uuid5(TENANTS, alice.tenant))
    folder.write_bytes(b"no directory")
    answer = alice.send(b"paper", to=place, request_id="one")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:backbone:problem:unavailable")
    assert str(web.root) not in answer.text
    assert (folder.read_bytes(), web.incoming(), used_and_held()) == (b"no directory", [], (0, 0))
    folder.unlink()
    assert alice.send(b"paper", to=place, request_id="one").status_code == 201
    assert (usage(), list(web.files().values())) == (5, [b"paper"])


NAME, NUMBER, TITLE, REQUEST, BODY = (
    "travel-receipt-Zürich.pdf", "CLM-2026-004711", "Conference in Basel", "req-external-8812",
    b"Hotel Baur au Lac, two nights, 1180 francs",
)  # fmt: skip


@pytest.mark.spec("C7")
def test_no_commercial_row_tells_what_was_uploaded_by_whom_and_where(make_person: MakePerson, web: Web) -> None:
    alice = make_person(limit=150)
    claim = alice.claim(NUMBER, TITLE)
    item = alice.item(claim)
    place = f"/claims/{claim}/items/{item}/attachments"
    attachment = alice.upload(BODY, to=place, name=NAME, request_id=REQUEST)
    assert alice.send(BODY, to=place, name=NAME).status_code == 201
    assert alice.send(BODY * 2, to=attachment, name=NAME, method="put").status_code == 429
    assert alice.send(BODY * 2, to=place, name=NAME, request_id=REQUEST).status_code == 409
    assert alice.call("delete", attachment).status_code == 204
    text = commercial_text()
    secrets = (
        NAME,
        NUMBER,
        TITLE,
        REQUEST,
        BODY.decode(),
        claim,
        item,
        str(alice.token_id),
        alice.token,
        "application/pdf",
    )
    assert (usage(), found_in(text, *secrets)) == (84, [])
    assert "attachment.upload" in text
    said = web.process.said()
    assert found_in(said, NAME, NUMBER, TITLE, BODY.decode(), alice.token) == []
