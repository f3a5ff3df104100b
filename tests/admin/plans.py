"""What the statements of a page may cost, judged by their plans and not by a clock."""

import json
from collections.abc import Iterable
from typing import Any

from django.db import connections

from tests.admin.crawl import Ran

MOST_STATEMENTS = 9
"""Of one page, login included."""
BIG = 5_000
"""A plan that reads more rows than this one by one, or sorts them, is no plan for a page."""
CAP = 50_001
"""The largest LIMIT with which a page counts."""


def assert_all_by_index(ran: Iterable[Ran]) -> None:
    """No statement of a read role skips rows, reads a large table whole, or sorts much."""
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
