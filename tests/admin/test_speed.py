"""Pages cost the same on many rows: few statements, all of them by index, none that counts or skips its way."""

import json
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from config.owners import owner_named
from outbox.contracts.first_release import ROUTES
from tests.admin.crawl import Ran, crawl, lists, watching
from tests.admin.fill import fill
from tests.admin.world import World

MOST_STATEMENTS = 9
ROWS = 30_000
BIG = 5_000
"""A plan that reads more rows than this one by one, or sorts them, is no plan for a page."""
CAP = 50_001
"""The largest LIMIT with which a page counts."""


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
    for one in {(one.alias, one.sql): one for one in ran if one.alias.endswith(".read")}.values():
        assert "OFFSET" not in one.sql.upper()
        problem = _expensive(one)
        assert problem is None, f"{one.alias}: {problem}\n{one.sql}\n{one.parameters}"


def _expensive(one: Ran) -> str | None:
    with connections[one.alias].cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) " + one.sql, one.parameters)
        (plan,) = cursor.fetchone()
    return _look(plan[0]["Plan"] if isinstance(plan, list) else json.loads(plan)[0]["Plan"], limited=False)


def _look(node: dict[str, Any], *, limited: bool) -> str | None:
    kind, rows = node["Node Type"], node["Plan Rows"]
    if kind == "Seq Scan" and rows > BIG and not (limited and "Filter" not in node):
        return f"reads {node['Relation Name']} whole"
    if kind == "Seq Scan" and "Filter" in node and _size(node) > BIG:
        return f"filters {node['Relation Name']} row by row"
    if kind == "Sort" and rows > BIG and not limited:
        return f"sorts {rows} rows"
    below = limited or (kind == "Limit" and rows <= CAP)
    return next((found for child in node.get("Plans", ()) if (found := _look(child, limited=below))), None)


def _size(node: dict[str, Any]) -> float:
    return float(node["Total Cost"]) * 50
    # A page of 8 KiB costs one unit and holds about fifty rows.


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
