"""Windows, lines, orphans and charges as operators see them, and the way from a charge to its posting."""

from typing import Any

import pytest
from django.test import Client

from billing.telemetry_charges.models import StoredTelemetryCharge
from metering.consumption.models import ConsumptionCharge, ConsumptionWindow
from tests.admin.crawl import crawl, watching
from tests.admin.plans import MOST_STATEMENTS
from tests.admin.test_pages import text_of
from tests.consumption.make import HOUR, WINDOW, learn, llm, receive, sample, swept
from tests.telemetry_charges.make import payer

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.spec("T13")]
PLACES = ("/admin/telemetry/consumption-", "/admin/telemetry/orphans", "/admin/billing/telemetry-charges")


@pytest.fixture(autouse=True)
def some_consumption(database: None) -> None:
    """A charge of two generations, a refused one, an orphan, and a window that changed since."""
    payer(organization="org:payer")
    learn(k101="org:payer", k102="org:other")
    receive(llm(prompt_tokens=1_000_000), llm(manager_key_id="404", prompt_tokens=7), llm(manager_key_id="102"))
    receive(sample(utilization=0.25), sample(above_threshold=True), mode="per_cluster")
    swept()
    receive(llm(prompt_tokens=1_000_000, completion_tokens=0))
    swept()
    receive(llm(WINDOW + HOUR))


def rows(looker: Client, address: str) -> list[Any]:
    answer = looker.get(address)
    assert answer.status_code == 200
    return list(answer.context["table"].rows)


def test_windows_say_whether_they_are_summed_up(looker: Client) -> None:
    receive(llm())
    states = {(row[1].value, row[3].label) for row in rows(looker, "/admin/telemetry/consumption-windows/")}
    assert states == {("llm_billing", "changed"), ("resource_utilization", "summed up")}
    swept()
    page = rows(looker, "/admin/telemetry/consumption-windows/")[-1][0].url
    shown = text_of(looker.get(page))
    for part in ("summed up", "org:payer", "key 101", "3 calls: 2,000,100 in", "unknown key"):
        assert part.lower() in shown.lower(), part
    assert ConsumptionWindow.objects.count() == 3


def test_orphans_stand_on_a_page_of_their_own_with_their_amounts(looker: Client) -> None:
    (row,) = rows(looker, "/admin/telemetry/orphans/")
    assert (row[2].label, row[3].text, row[5]) == ("Unknown key", "key 404", "1 calls: 7 in, 10 out")
    assert "404" in text_of(looker.get(row[0].url))
    assert rows(looker, "/admin/telemetry/orphans/?reason=no_organization") == []
    assert len(rows(looker, "/admin/telemetry/orphans/?reason=unknown_key&q=404")) == 1
    assert rows(looker, "/admin/telemetry/orphans/?q=101") == []
    assert len(rows(looker, "/admin/telemetry/consumption-lines/")) == 4
    assert len(rows(looker, "/admin/telemetry/consumption-lines/?organization=org:payer&key=101")) == 1
    assert any(
        row[5] == "2 samples, 1 above, mean 0.375" for row in rows(looker, "/admin/telemetry/consumption-lines/")
    )


def test_charges_show_their_state_their_reason_and_lead_to_billing(looker: Client) -> None:
    assert [row[5].label for row in rows(looker, "/admin/telemetry/consumption-charges/?state=refused")] == [
        "no account", "no account",
    ]  # fmt: skip
    (row,) = rows(looker, "/admin/telemetry/consumption-charges/?state=posted")
    shown = text_of(looker.get(row[0].url))
    charge = ConsumptionCharge.objects.get(state="posted")
    for part in (charge.charge_id, "llm.input_tokens", "2,000,000", charge.posted_sha256[:12]):  # type: ignore[index]  # it is posted
        assert str(part) in shown, part
    answer = looker.get(f"/admin/billing/telemetry-charges/{str(charge.charge_id).replace(':', '_3A')}/")
    generations = answer.context["tables"][0].rows
    assert [row[0] for row in generations] == [2, 1]
    assert generations[0][1].picos == generations[0][2].picos + generations[1][2].picos == charge.amount_picos
    posting = looker.get(generations[0][3].url)
    assert "Charge of telemetry" in text_of(posting)
    assert "&quot;quantities&quot;" in answer.content.decode()


def test_the_search_box_finds_a_charge_by_its_id(looker: Client) -> None:
    identity = StoredTelemetryCharge.objects.get().charge_id
    answer = looker.get("/admin/search/", {"q": identity})
    assert answer.headers["Location"] == f"/admin/billing/telemetry-charges/{identity.replace(':', '_3A')}/"


def test_every_page_of_consumption_runs_few_statements_and_only_reads(looker: Client) -> None:
    with watching() as ran:
        before = 0
        for address, _ in crawl(looker):
            own = ran[before:]
            before = len(ran)
            if address.startswith(PLACES):
                assert len(own) <= MOST_STATEMENTS, f"{address}: {[one.sql[:90] for one in own]}"
                assert {one.alias for one in own} <= {"telemetry.read", "billing.read", "default.session"}, address
