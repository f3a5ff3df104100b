"""Operators see clusters, tokens, keys and audit, and of a token neither its text nor its hash."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections
from django.test import Client

from metering.clusters.administrators import grant, mint
from metering.clusters.managed_keys import Key, learn_keys
from metering.clusters.revoke import revoke
from metering.clusters.rotate import Rotated
from tests.admin.crawl import links, watching
from tests.clusters.conftest import ACTOR

pytestmark = [pytest.mark.spec("T2", "O31")]
LISTS = ("clusters", "otlp-tokens", "managed-keys", "audit", "administrator-tokens")


@pytest.fixture
def pages(rotated: Callable[[], Rotated], login: Callable[..., Client]) -> dict[str, str]:
    """Every list of the room, its first row and where that leads, read as an operator, by address."""
    first, second = rotated(), rotated()
    rotated()
    revoke(cluster_id=7, token_id=first.token_id, actor=ACTOR)
    learn_keys(keys=[Key("11", "organization-1", "a key")], actor=ACTOR)
    grant(name="robot", actor=ACTOR)
    minted = mint(name="robot", life=timedelta(days=1), actor=ACTOR)
    client = login("looker")
    found: dict[str, str] = {}
    with watching() as ran:
        wanted = [f"/admin/metering/{name}/" for name in LISTS]
        wanted += [f"/admin/metering/{name}/?cluster=7" for name in ("otlp-tokens", "audit")]
        while wanted:
            address = wanted.pop(0)
            answer = client.get(address)
            assert answer.status_code == 200, address
            found[address] = answer.content.decode()
            inside = {link for link in links(found[address]) if link.startswith("/admin/metering/") and link != address}
            wanted += sorted(inside - set(found) - set(wanted))
    selects = [one.sql for one in ran if "otlp_tokens" in one.sql or "administrator_tokens" in one.sql]
    assert selects
    assert not [sql for sql in selects if "token_sha256" in sql]
    everything = "".join(found.values())
    with connections["metering.read"].cursor() as cursor:
        cursor.execute("SELECT token_sha256 FROM otlp_tokens UNION SELECT token_sha256 FROM administrator_tokens")
        for (hash_,) in cursor.fetchall():
            assert hash_[:12] not in everything
    for secret in (first.plaintext.text, second.plaintext.text, minted.plaintext.text):
        assert secret[10:20] not in everything
    return found


def test_each_list_and_each_row_shows_what_an_operator_needs(pages: dict[str, str]) -> None:
    expected = {
        "/admin/metering/clusters/": ("seven", "Gateway"),
        "/admin/metering/clusters/7/": ("Latest tokens", "Latest in its audit", "Superseded", "Primary", "Revoked"),
        "/admin/metering/otlp-tokens/": ("Superseded", "Primary", "Revoked", "Accepted", "Refused"),
        "/admin/metering/managed-keys/": ("organization-1", "a key"),
        "/admin/metering/managed-keys/11/": ("organization-1",),
        "/admin/metering/audit/": ("Token minted", "alice", "session", "Administrator granted"),
        "/admin/metering/audit/?cluster=7": ("Token minted", "Cluster created"),
        "/admin/metering/administrator-tokens/": ("robot",),
    }
    for address, words in expected.items():
        for word in words:
            assert word in pages[address], f"{address}: {word}"
    assert "Administrator granted" not in pages["/admin/metering/audit/?cluster=7"]
    tokens = [text for address, text in pages.items() if address.startswith("/admin/metering/otlp-tokens/0")]
    assert len(tokens) == 3
    assert all("What was done to it" in text for text in tokens)


def test_an_odd_filter_finds_nothing_and_breaks_nothing(pages: dict[str, str], login: Callable[..., Client]) -> None:
    client = login("looker")
    for value in ("8", "x", "-1", "9" * 400, "\u0667", str(2**63)):
        for name in ("otlp-tokens", "audit"):
            assert client.get(f"/admin/metering/{name}/", {"cluster": value}).status_code == 200
        assert client.get("/admin/metering/managed-keys/", {"organization": value, "q": value}).status_code == 200
