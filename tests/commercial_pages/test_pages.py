"""What operators see of quota: how full entitlements are, every reservation with its end, usage, costs, sweeps."""

import re
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client
from django.utils import timezone

from config.readonly_admin import Part, Share
from config.templatetags.cells import draw
from tests.admin.crawl import crawl, watching
from tests.commercial.make import plan, rows
from tests.commercial.scan import found_in
from tests.commercial.test_privacy import SECRETS
from tests.commercial_pages.conftest import World

MOST_STATEMENTS = 9


def text_of(answer: Any) -> str:
    """What a person reads on a page."""
    assert answer.status_code == 200, answer.status_code
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


@pytest.mark.spec("C1")
def test_the_bar_of_an_entitlement_shows_used_held_and_free(looker: Client, quota: World) -> None:
    listed = looker.get("/admin/billing/entitlements/")
    assert "used 3, held 2, free 5 of 10 events" in text_of(listed)
    ((_, _, share, *_),) = listed.context["table"].rows
    assert [(part.name, part.amount) for part in share.parts] == [("used", 3), ("held", 2)]
    assert (share.whole, share.free) == (10, 5)
    page = looker.get(listed.context["table"].rows[0][0].url)
    assert "used 3, held 2, free 5 of 10 events" in text_of(page)
    assert "org:looked-at" in text_of(page)


@pytest.mark.parametrize(
    ("whole", "used", "held", "widths"),
    [
        (10, 3, 2, [("0.0", "30.0"), ("30.0", "20.0")]),
        (10, 0, 0, [("0.0", "0.0"), ("0.0", "0.0")]),
        (0, 0, 0, [("0.0", "0.0"), ("0.0", "0.0")]),
        (10**9, 1, 10**9 - 1, [("0.0", "0.6"), ("0.6", "100.0")]),
    ],
)
def test_a_bar_never_draws_something_as_nothing(
    whole: int, used: int, held: int, widths: list[tuple[str, str]]
) -> None:
    share = Share(whole, (Part("used", used, "tone-work"), Part("held", held, "tone-warn")), "bytes")
    drawn = draw(share, timezone.now())
    assert re.findall(r'<rect class="tone-\w+" x="([\d.]+)" width="([\d.]+)"', drawn) == widths
    assert "style=" not in drawn
    assert f"free {whole - used - held:,} of {whole:,} bytes" in drawn


@pytest.mark.spec("C2")
def test_a_reservation_shows_how_each_generation_ended_and_where_its_markers_are(looker: Client, quota: World) -> None:
    held = looker.get("/admin/billing/quota-reservations/?queue=held").context["table"].rows
    assert [str(row[0].value) for row in held] == [str(quota.held.reservation_id)]
    page = looker.get(held[0][0].url)
    shown = text_of(page)
    assert "Reserved" in shown
    assert "notes/note.write" in shown
    usage, found, markers = page.context["tables"]
    assert (len(usage.rows), len(found.rows), [row[0] for row in markers.rows]) == (0, 0, [1])
    marker = text_of(looker.get(markers.rows[0][1].url))
    assert "Refused" in marker
    settled = looker.get(f"/admin/billing/quota-reservations/{quota.settled.reservation_id}/")
    usage, found, markers = settled.context["tables"]
    assert (len(usage.rows), [row[0] for row in markers.rows]) == (1, [1])
    assert "Committed" in text_of(looker.get(markers.rows[0][1].url))
    assert "bank_one" in text_of(settled)


@pytest.mark.spec("C10")
def test_usage_shows_its_quantity_its_cost_and_its_period(looker: Client, quota: World) -> None:
    listed = looker.get("/admin/billing/usage/")
    assert "0.00000075 USD" in text_of(listed)
    page = looker.get(f"/admin/billing/usage/{quota.settled.reservation_id}/")
    shown = text_of(page)
    assert "0.00000025 USD" in shown
    assert "price-book:provider-costs:1" in shown
    period = rows("SELECT period_id FROM commercial_entitlement_periods")[0][0]
    assert len(looker.get(f"/admin/billing/usage/?period={period}").context["table"].rows) == 1
    for nothing in (period + 1, "nothing", "9" * 30, "٣"):
        looked = looker.get("/admin/billing/usage/", {"period": nothing})
        assert looked.status_code == 200
    assert len(looker.get(f"/admin/billing/usage/?period={period + 1}").context["table"].rows) == 0


@pytest.mark.spec("C9")
def test_sweeps_show_what_was_left_and_for_how_long(looker: Client, quota: World) -> None:
    listed = looker.get("/admin/billing/sweeps/")
    ((reservation, generation, ended, business, held_for, _),) = listed.context["table"].rows
    assert str(reservation.value) == str(quota.left.reservation_id)
    assert (generation, ended.value.value, business) == (1, "released", "attachments")
    assert held_for.end > held_for.start
    assert "Found by sweeps" in text_of(looker.get(ended.url))


@pytest.mark.spec("C1")
def test_a_plan_and_a_subscription_lead_to_each_other_and_to_their_periods(looker: Client, quota: World) -> None:
    subscription = looker.get(f"/admin/billing/subscriptions/{quota.contract.subscription_id.replace(':', '_3A')}/")
    shown = text_of(subscription)
    assert "active" in shown
    assert "used 3, held 2, free 5 of 10 events" in shown
    assert "All periods of this subscription" in shown
    more = looker.get(subscription.context["more"][1])
    assert len(more.context["table"].rows) == 1
    (link,) = {
        unquote(url) for url in re.findall(r'href="(/admin/billing/plans/[^"]+/)"', subscription.content.decode())
    }
    page = text_of(looker.get(link))
    for part in ("notes/note.write", "provider-costs", "Hard limit per period", "jcs-sha256-v1"):
        assert part in page
    tenant = looker.get("/admin/billing/subscriptions/", {"tenant": "organization:org:looked-at"})
    assert len(tenant.context["table"].rows) == 1


def test_the_search_box_finds_what_an_operator_may_have_in_hand(looker: Client, quota: World) -> None:
    wanted = {
        quota.contract.subscription_id: "/admin/billing/subscriptions/",
        str(quota.settled.reservation_id): "/admin/billing/quota-reservations/",
        f"commercial-plan:{quota.contract.plan}:1": "/admin/billing/plans/",
    }
    for identifier, place in wanted.items():
        answer = looker.get("/admin/search/", {"q": identifier})
        assert answer.status_code == 302, identifier
        assert answer.url.startswith(place)  # type: ignore[attr-defined]  # it redirects


@pytest.mark.spec("C7")
def test_every_page_costs_few_statements_and_shows_nothing_of_the_business(looker: Client, quota: World) -> None:
    plan(name="another")
    with watching() as ran:
        before = 0
        for address, page in crawl(looker):
            statements = [one.sql[:90] for one in ran[before:]]
            before = len(ran)
            assert len(statements) <= MOST_STATEMENTS, f"{address}: {statements}"
            if "/billing/" in address or "/attachments/" in address:
                assert found_in(page, *SECRETS) == []
    assert {one.alias for one in ran if "commercial" in one.sql} == {"billing.read", "attachments.read"}


def test_an_empty_installation_has_empty_pages(looker: Client) -> None:
    for slug in ("plans", "subscriptions", "entitlements", "quota-reservations", "usage", "sweeps"):
        assert "No rows." in text_of(looker.get(f"/admin/billing/{slug}/"))
    assert "No rows." in text_of(looker.get("/admin/attachments/markers/"))
