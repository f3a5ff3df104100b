"""Operators see connectors, secrets, events and conflicts, and nothing of a payload or of what it was signed with."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.test import Client

from attachments.connectors.rotate import revoke, rotate
from tests.admin.conftest import client, looker, make_operator, quick_hashes, static_files
from tests.admin.crawl import links, watching
from tests.commercial.make import rows, subscribe
from tests.commercial.scan import found_in
from tests.connectors.conftest import PLAN
from tests.connectors.facts import READ
from tests.connectors.make import ACTOR, connector, deliver

__all__ = ["client", "looker", "make_operator", "quick_hashes", "static_files"]
pytestmark = [pytest.mark.spec("O31", "C7")]
EXTERNAL = "evt_external_8812_of_the_bank"
BODY = b'{"note":"Hotel Baur au Lac, two nights, 1180 francs"}'
SECRETS = (EXTERNAL, "Hotel Baur au Lac", "1180 francs")
LISTS = ("connectors", "connector-secrets", "connector-events", "connector-conflicts", "connector-acts")
MOST_STATEMENTS = 9
NEVER_READ = ("sealed", "secret_sha256", "body", "candidate", "webhook_id")


@dataclass(frozen=True, slots=True)
class Seen:
    """Every page of the room, by address."""

    pages: dict[str, str]
    connector_id: str
    event_id: str


@pytest.fixture
def seen(looker: Client) -> Iterator[Seen]:
    """A connector with secrets in every state, an event, a conflict; and every page, read as an operator."""
    made = connector(tenant=subscribe(**PLAN).tenant_id, name="bank of tests")
    first = deliver(made.connector_id, made.issued.secret, EXTERNAL, BODY)
    assert first
    assert deliver(made.connector_id, made.issued.secret, EXTERNAL, BODY + b" ") is None
    revoke(connector_id=made.connector_id, secret_id=made.issued.secret_id, actor=ACTOR)
    texts = [rotate(connector_id=made.connector_id, actor=ACTOR).issued.secret.text for _ in range(2)]
    pages: dict[str, str] = {}
    with watching() as ran:
        wanted = [f"/admin/attachments/{name}/" for name in LISTS]
        while wanted:
            address = wanted.pop(0)
            before = len(ran)
            answer = looker.get(address)
            assert answer.status_code == 200, address
            assert len(ran) - before <= MOST_STATEMENTS, address
            pages[address] = answer.content.decode()
            inside = {link for link in links(pages[address]) if link.startswith("/admin/attachments/connector")}
            wanted += sorted(inside - set(pages) - set(wanted))
    statements = [one.sql for one in ran if "financial_connector" in one.sql]
    assert statements
    for column in NEVER_READ:
        assert not [sql for sql in statements if f'"{column}"' in sql.partition(" FROM ")[0]], column
    everything = "".join(pages.values())
    assert found_in(everything, *SECRETS, *(text[6:30] for text in texts)) == []
    for (hash_,) in rows("SELECT secret_sha256 FROM financial_connector_secrets", alias=READ):
        assert hash_[:12] not in everything
    yield Seen(pages, str(made.connector_id), str(first.event_id))


def test_each_list_and_each_row_shows_what_an_operator_needs(seen: Seen) -> None:
    expected = {
        "/admin/attachments/connectors/": ("bank of tests", "organization:", "bank_one"),
        f"/admin/attachments/connectors/{seen.connector_id}/": (
            "Latest secrets",
            "Latest events",
            "What was done to it",
        ),
        "/admin/attachments/connector-secrets/": ("Current", "Superseded", "Revoked", "Accepted", "Refused"),
        f"/admin/attachments/connector-events/{seen.event_id}/": (
            "Other payloads under its id",
            "Digest of the payload",
        ),
        "/admin/attachments/connector-acts/": ("Connector created", "Secret revoked", ACTOR),
        f"/admin/attachments/connector-events/?connector={seen.connector_id}": (seen.event_id[:8],),
    }
    for address, words in expected.items():
        for word in words:
            assert word in seen.pages[address], f"{address}: {word}"
    conflict = [text for address, text in seen.pages.items() if address.startswith("/admin/attachments/connector-con")]
    assert len(conflict) == 2


def test_an_event_is_found_by_the_id_under_which_it_was_sent(seen: Seen, looker: Client) -> None:
    for text, found in ((EXTERNAL, 1), (seen.event_id, 1), (EXTERNAL[:-1], 0), ("\u0667", 0), ("x" * 400, 0)):
        answer = looker.get("/admin/attachments/connector-events/", {"q": text})
        assert len(answer.context["table"].rows) == found
    for value in ("x", "-1", seen.connector_id[:-1], "9" * 400):
        for name in ("connector-events", "connector-secrets", "connector-acts"):
            assert looker.get(f"/admin/attachments/{name}/", {"connector": value}).status_code == 200
