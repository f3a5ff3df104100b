"""Pages of telemetry cost the same on many events: few statements, all of them by index."""

from collections.abc import Iterator

import pytest
from django.test import Client

from config.readonly_admin import SECTIONS
from tests.admin.crawl import links, watching
from tests.admin.plans import MOST_STATEMENTS, assert_all_by_index
from tests.otlp_pages.fill import fill

ROWS, CLUSTERS, DAYS = 100_000, 30, 31
QUERIES = (
    "senders/4711/",
    "llm-events/?cluster=7",
    "llm-events/?q=event-5000",
    "llm-events/?q=nobody",
    "resource-events/?cluster=7",
    "conflicts/?reason=cluster",
    "conflicts/?cluster=7",
    "conflicts/?q=event-5000",
    "drops/?cluster=7",
)


def pages(client: Client) -> Iterator[str]:
    """Every list of the section, its second page and its first row, and every question; each was just answered."""
    section = SECTIONS["telemetry"]
    wanted = [page.list_url() for page in section._registry.values()]  # type: ignore[attr-defined]  # ReadOnlyAdmin
    wanted += [f"/admin/telemetry/{query}" for query in QUERIES]
    for address in wanted:
        answer = client.get(address)
        assert answer.status_code == 200, address
        yield address
        rows = [link for link in links(answer.content.decode()) if link.startswith(address) and link != address]
        for link in (*[row for row in rows if "at=" in row][:1], *[row for row in rows if "?" not in row][:1]):
            assert client.get(link).status_code == 200, link
            yield link


@pytest.mark.slow
@pytest.mark.spec("T11")
def test_every_page_of_telemetry_runs_fewer_than_ten_statements_and_all_of_them_by_index(
    looker: Client, telemetry: None
) -> None:
    fill(rows=ROWS, clusters=CLUSTERS, days=DAYS)
    with watching() as ran:
        before = 0
        for address in pages(looker):
            statements = [one.sql[:90] for one in ran[before:]]
            assert 2 < len(statements) <= MOST_STATEMENTS, f"{address}: {statements}"
            before = len(ran)
    assert_all_by_index(ran)
