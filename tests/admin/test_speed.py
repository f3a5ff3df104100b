"""Pages cost the same on many rows: few statements, all of them by index, none that counts or skips its way."""

from typing import Any

import pytest
from django.test import Client

from config.owners import owner_named
from outbox.contracts.first_release import ROUTES
from tests.admin.crawl import crawl, lists, watching
from tests.admin.fill import fill
from tests.admin.plans import MOST_STATEMENTS, assert_all_by_index
from tests.admin.world import World

ROWS = 30_000


@pytest.fixture
def many_rows(world: World) -> None:
    """A filled outbox of core and of billing, beside a real world."""
    fill(owner_named("core"), rows=ROWS, event_type="run.created@2.0", destination="core_operations")
    destination = "billing_finalization_coordinator"
    billing = owner_named("billing")
    event_type = next(name for name, to in ROUTES if destination in to and name in billing.events)
    fill(billing, rows=ROWS, event_type=event_type, destination=destination)


def test_every_page_runs_fewer_than_ten_statements_and_all_of_them_by_index(looker: Client, many_rows: None) -> None:
    with watching() as ran:
        before = 0
        for address, _ in crawl(looker):
            statements = [one.sql[:90] for one in ran[before:]]
            assert len(statements) <= MOST_STATEMENTS, f"{address}: {statements}"
            before = len(ran)
    assert_all_by_index(ran)


def test_a_list_says_about_how_many_rows_there_are_without_counting_them(looker: Client, many_rows: None) -> None:
    text = looker.get("/admin/core/events/").content.decode()
    assert "about 30," in text
    with watching() as ran:
        looker.get("/admin/core/deliveries/")
    counts = [one.sql for one in ran if "count(" in one.sql.lower()]
    assert counts
    assert all("LIMIT 10001" in sql for sql in counts)


def test_pages_go_forward_and_back_by_key_without_losing_or_repeating_a_row(looker: Client, many_rows: None) -> None:
    forward, address = [], "/admin/core/deliveries/"
    pages = []
    for _ in range(5):
        answer = looker.get(address)
        pages.append(_keys(answer))
        forward += pages[-1]
        address = answer.context["next_url"]
    assert len(forward) == len(set(forward)) == 250
    assert forward == sorted(forward, reverse=True)
    for expected in reversed(pages[:-1]):
        address = answer.context["previous_url"]
        answer = looker.get(address)
        assert _keys(answer) == expected
    assert answer.context["previous_url"] is None


def test_a_queue_shows_its_oldest_first_and_every_row_once(looker: Client, many_rows: None) -> None:
    address: str | None = "/admin/billing/deliveries/?queue=pending~billing_finalization_coordinator"
    seen = []
    while address:
        answer = looker.get(address)
        seen += _keys(answer)
        address = answer.context["next_url"]
    assert len(seen) == len(set(seen)) == ROWS // 100
    assert seen == sorted(seen)


def _keys(answer: Any) -> list[str]:
    return [row[0].url for row in answer.context["table"].rows]


def test_every_list_has_a_key_order_in_one_direction() -> None:
    for pages, address in lists():
        directions = {name.startswith("-") for name in pages.order}
        assert len(directions) == 1, address
