"""An operator's day in a real browser: login, home, deliveries, attempts, quarantine, timeline, search, logout."""

import pytest

from tests.admin.world import World
from tests.browser.conftest import Browser


@pytest.mark.spec("O31")
@pytest.mark.trap("D22")
def test_an_operator_finds_the_way_from_home_to_the_attempts_of_one_delivery(world: World, browser: Browser) -> None:
    browser.log_in()
    assert browser.heading.startswith("All owners")
    assert browser.texts(".owner-card strong") == ["Core", "Execution", "Gateway", "Metering", "Billing"]
    assert "quarantine" in browser.texts(".owner-card .state")[0]
    assert len(browser.driver.find_elements("css selector", ".chart rect")) > 0
    browser.follow("Deliveries")
    assert browser.heading.startswith("Deliveries")
    assert len(browser.texts("table.operator tbody tr")) == 44
    event_id = str(world.retried.event_id)
    browser.driver.find_element("css selector", ".lookup input").send_keys(event_id)
    browser.click(".lookup button")
    browser.follow(event_id)
    outcomes = browser.texts("table.operator tbody td:nth-child(4)")
    assert [text.partition("\n")[0] for text in outcomes] == ["Retryable", "Retryable", "Acknowledged"]
    assert "connection_reset" in browser.text
    assert "The consumer asks for patience." in browser.text
    assert browser.errors() == []


@pytest.mark.spec("O31")
def test_quarantine_is_grouped_and_leads_to_its_evidence(world: World, browser: Browser) -> None:
    browser.log_in()
    browser.go("/admin/core/quarantine/")
    group = browser.texts(".above tbody tr td")
    assert group[:4] == ["schema_unknown", "run.created@2.0", "core_operations", "1"]
    browser.follow("schema_unknown")
    browser.click("table.operator:last-of-type tbody td a")
    browser.go(f"/admin/core/quarantine/{world.quarantined.event_id}~core_5Foperations/")
    assert browser.heading == "Quarantined: schema_unknown"
    assert "The payload has a field" in browser.text
    assert browser.errors() == []


@pytest.mark.spec("O26")
def test_the_search_box_leads_from_any_id_to_the_timeline(world: World, browser: Browser) -> None:
    browser.log_in()
    browser.go("/admin/core/operations/")
    browser.click('table.operator tbody td a[href*="trace"]')
    operation = browser.heading.removeprefix("Operation ")
    assert browser.texts(".timeline .head code") == ["run.created@2.0", "wallet.reserved@2.0"]
    fields = dict(zip(browser.texts("dl.fields > dt"), browser.texts("dl.fields > dd"), strict=True))
    for wanted in (operation, fields["Run id"], fields["Expected reservation id"], fields["Run event"]):
        browser.type("q", wanted)
        browser.click("#find button")
        if not browser.heading.startswith("Operation "):
            browser.follow(operation)
        assert browser.heading == f"Operation {operation}"
    assert browser.errors() == []


def test_a_wrong_password_is_told_and_too_many_lock_the_name_out(browser: Browser) -> None:
    browser.log_in("not the passphrase 7")
    assert "Please enter the correct username and password" in browser.text
    for _ in range(4):
        browser.log_in("not the passphrase 7")
    assert browser.heading == "Too many failed logins"
    browser.log_in()
    assert browser.heading == "Too many failed logins"
    assert "15 min" in browser.text


def test_logging_out_closes_every_page(browser: Browser) -> None:
    browser.log_in()
    browser.click("#logout-form button")
    assert browser.driver.current_url.endswith("/admin/login/")
    browser.go("/admin/core/deliveries/")
    assert "/admin/login/?next=" in browser.driver.current_url
    assert browser.errors() == []


def test_the_page_reads_itself_again_where_asked_and_works_in_the_dark(world: World, browser: Browser) -> None:
    browser.log_in()
    browser.follow("read again every 10 s")
    assert browser.driver.find_elements("css selector", 'meta[http-equiv="refresh"]')
    browser.driver.find_element("css selector", ".theme-toggle").click()
    assert browser.driver.find_element("tag name", "html").get_attribute("data-theme") in {"dark", "light"}
    assert browser.errors() == []
