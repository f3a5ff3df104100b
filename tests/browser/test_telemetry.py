"""An operator follows a cluster in a real browser: from the list of clusters to an event and what contradicts it."""

from datetime import UTC, datetime, timedelta

import pytest

from metering.clusters.clusters import create_cluster
from metering.clusters.models import Mode
from tests.browser.conftest import Browser
from tests.clusters.conftest import ACTOR
from tests.otlp.conftest import telemetry
from tests.otlp.make import ABSENT, llm, sample
from tests.otlp.storing import put

__all__ = ["telemetry"]
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def seven(telemetry: None) -> None:
    """Cluster 7 sent calls, a sample, a resend, a record without a namespace and a contradiction."""
    create_cluster(cluster_id=7, name="seven", mode=Mode.GATEWAY, actor=ACTOR)
    good = [llm(f"call-{number}", at=NOW - timedelta(minutes=number), prompt_tokens=number) for number in range(20)]
    put([*good, good[0], sample("sample-1", at=NOW)])
    put([llm("bad", at=NOW, namespace=ABSENT)])
    put([llm("call-0", at=NOW, prompt_tokens=999)])


@pytest.mark.spec("T11")
def test_an_operator_finds_the_way_from_a_cluster_to_what_contradicts_its_event(seven: None, browser: Browser) -> None:
    browser.log_in()
    browser.go("/admin/metering/clusters/")
    browser.follow("what it sent")
    assert browser.heading == "Cluster 7"
    assert browser.texts(".tile .name") == [
        "Last LLM call", "Last resource sample", "Stored", "Duplicates", "Conflicts", "Dropped",
    ]  # fmt: skip
    assert browser.texts(".tile .value")[2:] == ["21", "1", "1", "1"]
    assert len(browser.driver.find_elements("css selector", ".chart rect.slot-0")) > 0
    assert len(browser.driver.find_elements("css selector", ".chart rect.slot-failed")) > 0
    browser.follow("LLM calls")
    assert browser.heading.startswith("LLM calls")
    assert len(browser.texts("table.operator tbody tr")) == 20
    browser.follow("call-0")
    assert browser.heading == "Event call-0"
    assert "Content" in browser.texts("table.operator tbody td:nth-child(2)")[0]
    browser.click("table.operator tbody td:first-child a")
    assert browser.heading == "Conflict of call-0"
    assert "999" in browser.text
    assert browser.errors() == []


def test_senders_drops_and_conflicts_are_reached_from_the_sidebar(seven: None, browser: Browser) -> None:
    browser.log_in()
    browser.go("/admin/telemetry/")
    for name in ("Senders", "LLM calls", "Resource samples", "Conflicts", "Drops"):
        browser.driver.find_element("css selector", "#nav-sidebar details[open]")
        browser.follow(name)
        assert browser.heading.startswith(name)
        assert len(browser.texts("table.operator tbody tr")) > 0
    assert browser.errors() == []
