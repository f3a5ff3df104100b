"""Pages of telemetry: every event found by its id, what contradicts it beside it, and one page per cluster."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from metering.clusters.clusters import create_cluster
from metering.clusters.models import Mode
from metering.otlp.admin.receipt import STEPS, steps
from metering.otlp.fields import Field, Kind
from metering.otlp.identify import scan
from metering.otlp.models import Conflict, LlmBillingEvent
from tests.clusters.conftest import ACTOR
from tests.otlp.make import ABSENT, llm, sample
from tests.otlp.storing import put

READ = "telemetry.read"
NOW = datetime.now(UTC).replace(microsecond=0)


def text_of(answer: Any) -> str:
    """What a person reads on a page."""
    assert answer.status_code == 200, answer.status_code
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


@pytest.fixture
def seven(telemetry: None) -> None:
    """Cluster 7 sent calls, samples, resends, bad records and contradictions; cluster 8 contradicts once."""
    create_cluster(cluster_id=7, name="seven", mode=Mode.GATEWAY, actor=ACTOR)
    good = [llm(f"call-{number}", at=NOW - timedelta(minutes=number), prompt_tokens=number) for number in range(60)]
    put([*good, *good[:5]], cluster="7")
    put([sample("sample-1", at=NOW)], cluster="7")
    put(
        [llm("bad-1", at=NOW, namespace=ABSENT), llm("bad-2", at=NOW, namespace=ABSENT), llm("bad-3", at=None)],
        cluster="7",
    )
    put([llm("call-0", at=NOW, prompt_tokens=999)], cluster="7")
    put([llm("call-1", at=NOW)], cluster="7")
    put([llm("call-2", at=NOW - timedelta(minutes=2), prompt_tokens=2)], cluster="8")
    scan(Kind.LLM_BILLING, seconds=20)


@pytest.mark.spec("T11")
def test_the_page_of_a_cluster_shows_what_arrived_what_was_dropped_and_when_it_was_last_seen(
    looker: Client, seven: None
) -> None:
    page = looker.get("/admin/telemetry/senders/7/")
    shown = page.context
    assert {name: shown[name] for name in ("stored", "duplicates", "conflicts", "dropped")} == {
        "stored": 62, "duplicates": 5, "conflicts": 1, "dropped": 3,
    }  # fmt: skip
    assert [(one.name, one.total) for one in shown["arrivals"].series] == [
        ("LLM calls", 61), ("resource samples", 1), ("duplicates", 5), ("conflicts", 1),
    ]  # fmt: skip
    assert [(one.name, one.total) for one in shown["drops"].series] == [("namespace", 2), ("occurred_at", 1)]
    assert sum(one.total for one in shown["by_day"].series) == 68
    assert all(0 <= age < 300 for _, _, age in shown["seen"])
    reasons = {cells[0].label: (cells[2], cells[3].text) for cells in shown["tables"][0].rows}
    assert reasons == {"namespace": (2, "bad-2"), "occurred_at": (1, "bad-3")}
    assert len(shown["tables"][1].rows) == 2
    assert 'class="slot-0"' in page.content.decode()


@pytest.mark.spec("T11")
def test_the_list_of_clusters_leads_to_what_each_sent_and_back(looker: Client, seven: None) -> None:
    clusters = looker.get("/admin/metering/clusters/").content.decode()
    assert '<a href="/admin/telemetry/senders/7/">what it sent</a>' in clusters
    page = looker.get("/admin/telemetry/senders/7/").content.decode()
    for address in re.findall(r'href="([^"]+cluster=7|/admin/metering/clusters/7/)"', page):
        assert looker.get(address).status_code == 200
    assert "/admin/metering/clusters/7/" in page


def test_all_senders_are_listed_also_those_of_whom_everything_was_dropped(looker: Client, seven: None) -> None:
    put([llm("nobody", at=None)], cluster="12")
    rows = {cells[0].value.text: cells for cells in looker.get("/admin/telemetry/senders/").context["table"].rows}
    assert list(rows) == ["7", "8", "12"]
    assert rows["7"][4:6] == (62, 5)
    assert (rows["8"][4], rows["8"][6].label) == (0, "1")
    assert (rows["12"][1], rows["12"][7].label) == (None, "1")


def test_a_cluster_that_sent_nothing_has_a_page_that_says_so(looker: Client, telemetry: None) -> None:
    shown = text_of(looker.get("/admin/telemetry/senders/4711/"))
    assert "never" in shown
    assert "Nothing has come in this time." in shown
    for nonsense in ("seven", "0", "-1", "1e3", "9" * 20):
        assert looker.get(f"/admin/telemetry/senders/{nonsense}/").status_code == 404


@pytest.mark.spec("T6")
def test_an_event_is_found_by_its_id_at_every_time_it_has(looker: Client, seven: None) -> None:
    found = looker.get("/admin/telemetry/llm-events/", {"q": "call-1"}).context["table"].rows
    assert len(found) == 2
    assert LlmBillingEvent.objects.using(READ).filter(event_id="call-1").count() == 2
    assert looker.get("/admin/telemetry/llm-events/", {"q": "call"}).context["table"].rows == ()
    page = looker.get(found[0][0].url)
    assert page.context["title"] == "Event call-1"
    (conflicts,) = page.context["tables"]
    assert [cells[1].label for cells in conflicts.rows] == ["Two times"]


@pytest.mark.spec("T6")
def test_a_conflict_shows_what_stands_what_arrived_and_where_they_differ(looker: Client, seven: None) -> None:
    by_reason = {row.reason: row for row in Conflict.objects.using(READ).all()}
    assert set(by_reason) == {"content", "cluster", "two_times"}
    page = looker.get(f"/admin/telemetry/conflicts/{by_reason['content'].conflict_id}/")
    shown = text_of(page)
    assert "prompt_tokens" in shown
    assert "999" in shown
    standing = re.search(r'href="(/admin/telemetry/llm-events/[^"]+)"', page.content.decode())
    assert standing is not None
    assert looker.get(standing[1]).context["title"] == "Event call-0"
    for reason, row in by_reason.items():
        listed = looker.get("/admin/telemetry/conflicts/", {"reason": reason}).context["table"].rows
        assert [cells[0].value for cells in listed] == [row.event_id]
    assert len(looker.get("/admin/telemetry/conflicts/", {"cluster": "8"}).context["table"].rows) == 1


@pytest.mark.spec("T7")
def test_drops_are_shown_by_reason_over_all_clusters_and_for_one(looker: Client, seven: None) -> None:
    put([llm("late", at=None)], cluster="9")
    page = looker.get("/admin/telemetry/drops/")
    totals = {cells[0].label: (cells[2], cells[3]) for cells in page.context["reasons"].rows}
    assert totals == {"namespace": (2, 1), "occurred_at": (2, 2)}
    assert set(totals) <= set(Field)
    assert len(page.context["table"].rows) == 3
    assert len(looker.get("/admin/telemetry/drops/", {"cluster": "7"}).context["table"].rows) == 2


def test_a_list_counts_the_events_of_all_days_without_reading_them(looker: Client, seven: None) -> None:
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("ANALYZE llm_billing_events")
    count = looker.get("/admin/telemetry/llm-events/").context["count"]
    assert (count.number, count.capped) == (61, False)


def test_the_last_step_of_a_chart_is_the_present_one() -> None:
    found = steps(datetime(2026, 3, 4, 12, 9, 59, 999999, tzinfo=UTC))
    assert len(found) == STEPS == 144
    assert (found[0], found[-1]) == (
        datetime(2026, 3, 3, 12, 10, tzinfo=UTC),
        datetime(2026, 3, 4, 12, 0, tzinfo=UTC),
    )
