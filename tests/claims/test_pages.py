"""Operators see claims and what is stored of them, and no content, no token and no identity."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from attachments.claims.members import Tenant, join
from attachments.claims.models import MembershipRole
from attachments.claims.tokens import mint
from attachments.files import place
from tests.admin.conftest import client, looker, make_operator, quick_hashes, static_files
from tests.admin.crawl import links, watching
from tests.claims.make import item_of, uploaded, user
from tests.commercial.make import rows

__all__ = ["client", "looker", "make_operator", "quick_hashes", "static_files"]
pytestmark = [pytest.mark.spec("O31", "C7")]
LISTS = ("claims", "attachments", "uploads", "members", "access-tokens")
MOST_STATEMENTS = 9
NAME, NUMBER, CONTENT = "Hotel Baur au Lac.pdf", "CLM-2026-004711", b"two nights, 1180 francs"


@pytest.fixture
def pages(looker: Client, settings: Any, tmp_path: Any) -> Iterator[dict[str, str]]:
    """Every page of the room, read as an operator, by address."""
    settings.ATTACHMENTS_ROOT, settings.ATTACHMENTS_INCOMING = tmp_path, tmp_path / ".incoming"
    place._tried.cache_clear()
    who = user()
    uploaded(who, item_of(who, number=NUMBER), CONTENT, name=NAME)
    tenant = Tenant("organization", "acme")
    join(user_id=7, tenant=tenant, role=MembershipRole.REVIEWER)
    token = mint(user_id=7, tenant=tenant, life=timedelta(days=1))
    found: dict[str, str] = {}
    wanted = [f"/admin/attachments/{name}/" for name in LISTS]
    with watching() as ran:
        while wanted:
            address = wanted.pop(0)
            before = len(ran)
            answer = looker.get(address)
            assert answer.status_code == 200, address
            assert len(ran) - before <= MOST_STATEMENTS, address
            found[address] = answer.content.decode()
            ours = tuple(f"/admin/attachments/{name}/" for name in LISTS)
            inside = {link for link in links(found[address]) if link.startswith(ours)}
            wanted += sorted(inside - set(found) - set(wanted))
    for column in ("token_sha256", "origin_sha256"):
        assert not [one.sql for one in ran if f'"{column}"' in one.sql.partition(" FROM ")[0]], column
    assert token.text not in "".join(found.values())
    yield found


def test_each_page_shows_what_an_operator_needs_and_a_name_only_where_it_belongs(pages: dict[str, str]) -> None:
    ((claim, attachment),) = rows(
        "SELECT claim_id, attachment_id FROM claim_attachments JOIN claim_items USING (item_id)",
        alias="attachments.read",
    )
    shown = pages[f"/admin/attachments/claims/{claim}/"]
    assert all(text in shown for text in ("CLM-2026-004711", "Trip to Basel", "Draft", "Hotel", "CHF"))
    named = [address for address, text in pages.items() if NAME in text]
    assert named == [f"/admin/attachments/attachments/{attachment}/"]
    everything = "".join(pages.values())
    assert CONTENT.decode() not in everything
    assert "a-session-of-alice" not in everything
    assert "Reviewer" in everything
