"""What the pages show: states with reasons, four-tuples and never a receipt's body, exact money, every id found."""

import re
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from config.owners import owner_named, producers
from operations.projector.models import ProjectionAppliedReceipt
from operations.timelines.models import OperationSummary
from outbox.models import OutboxDelivery, OutboxEvent
from tests.admin.crawl import crawl
from tests.admin.test_login import closed_port
from tests.admin.world import World

READ = owner_named("core").read_alias


def text_of(answer: Any) -> str:
    """What a person reads on a page."""
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


@pytest.mark.spec("O31")
def test_home_shows_backlog_age_rate_and_quarantine_of_every_producer(looker: Client, world: World) -> None:
    board = looker.get("/admin/").context["board"]
    core = board.owners[0]
    assert [owner.name for owner in board.owners] == [owner.name for owner in producers()]
    assert (core.glance.waiting, core.glance.quarantined, core.state.label) == (2, 1, "quarantine")
    assert core.oldest_age >= 0
    assert sum(core.glance.acknowledged) == OutboxDelivery.objects.using(READ).filter(status="acknowledged").count()
    assert core.glance.recent_failures == 3
    assert [(group.reason, group.number) for group in core.glance.groups] == [("schema_unknown", 1)]
    shown = text_of(looker.get("/admin/"))
    assert "no consumer bound" in shown
    assert "schema_unknown" in shown


@pytest.mark.trap("D22")
@pytest.mark.parametrize("name", ["billing", "core"])
def test_an_owner_whose_database_is_away_is_shown_as_unavailable_and_the_others_are_still_shown(
    looker: Client, world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias = owner_named(name).read_alias
    connections[alias].close()
    monkeypatch.setitem(connections.settings[alias], "PORT", closed_port())
    monkeypatch.setitem(connections[alias].settings_dict, "PORT", connections.settings[alias]["PORT"])
    home = text_of(looker.get("/admin/"))
    assert f"No answer from the database of {name}" in home
    other = "core" if name == "billing" else "gateway"
    assert looker.get(f"/admin/{other}/events/").status_code == 200
    away = looker.get(f"/admin/{name}/events/")
    assert away.status_code == 503
    assert b"it cannot be reached" in away.content
    assert looker.get(f"/admin/{name}/").status_code == 200
    assert "No answer from" in text_of(looker.get("/admin/search/", {"q": "something"}))


@pytest.mark.spec("O19", "O20")
def test_a_delivery_shows_its_attempts_in_order_and_its_receipt_by_four_tuple(looker: Client, world: World) -> None:
    row = OutboxDelivery.objects.using(READ).get(event__aggregate_id=world.retried.aggregate_id)
    answer = looker.get(f"/admin/core/deliveries/{row.event_id}~core_5Foperations/")
    shown = text_of(answer)
    numbers = [cells[0].value for cells in answer.context["tables"][0].rows]
    assert numbers == [1, 2, 3]
    order = [shown.index(word) for word in ("connection_reset", "too_busy")]
    assert order == sorted(order)
    for part in (row.ack_receipt_ref, row.ack_receipt_digest, "jcs-sha256-v1", row.ack_receipt_type):
        assert str(part) in shown


@pytest.mark.spec("O21", "O31")
def test_no_page_shows_the_body_of_a_receipt_nor_lists_receipts(looker: Client, world: World) -> None:
    assert ProjectionAppliedReceipt.objects.using(READ).exists()
    for address, page in crawl(looker):
        assert "receipts" not in address
        for field in ("appliedAt", "operationsProjectionAppliedReceiptRef", "operationsProjectionAppliedReceiptDigest"):
            assert field not in page, address


@pytest.mark.spec("O3")
def test_an_event_shows_its_envelope_digest_and_deliveries(looker: Client, world: World) -> None:
    row = OutboxEvent.objects.using(READ).get(aggregate_id=world.quarantined.aggregate_id)
    shown = text_of(looker.get(f"/admin/core/events/{row.event_id}/"))
    for part in (row.event_envelope_sha256, row.delivery_set_definition_digest, "matches", "Quarantined"):
        assert part in shown
    assert "&quot;aggregateId&quot;: &quot;run:broken&quot;" in shown


@pytest.mark.spec("O31")
def test_quarantine_is_grouped_by_reason_type_and_destination_with_first_and_last_time(
    looker: Client, world: World
) -> None:
    groups = looker.get("/admin/core/quarantine/").context["groups"]
    ((reason, event_type, destination, number, first, last),) = groups.rows
    assert (event_type.text, destination, number) == ("run.created@2.0", "core_operations", 1)
    assert reason.value.label == "schema_unknown"
    assert first == last
    filtered = looker.get(reason.url)
    assert len(filtered.context["table"].rows) == 1


@pytest.mark.spec("O26")
def test_the_search_box_finds_an_operation_by_every_exact_id_and_only_by_a_whole_one(
    looker: Client, world: World
) -> None:
    row = OperationSummary.objects.using(READ).filter(operation_id__startswith="trace:").order_by("id")[0]
    page = f"/admin/core/operations/{row.operation_id.replace(':', '_3A')}/"
    wanted = (
        row.operation_id, row.run_id, row.expected_reservation_id, str(row.run_event_id), str(row.reservation_event_id),
        row.correlation_id,
    )  # fmt: skip
    for identifier in wanted:
        answer = looker.get("/admin/search/", {"q": f" {identifier} "})
        found = [cells[0].url for table in answer.context["answer"].tables for cells in table.rows]
        assert page in found, identifier
        assert answer.context["answer"].unavailable == ()
    assert "No owner knows this id" in text_of(looker.get("/admin/search/", {"q": row.run_id[:-1]}))


@pytest.mark.spec("O29")
def test_an_operation_shows_its_timeline_and_its_hold_exactly(looker: Client, world: World) -> None:
    row = OperationSummary.objects.using(READ).filter(operation_id__startswith="trace:").order_by("id")[0]
    answer = looker.get(f"/admin/core/operations/{row.operation_id.replace(':', '_3A')}/")
    assert [entry["what"].text for entry in answer.context["entries"]] == ["run.created@2.0", "wallet.reserved@2.0"]
    assert f'title="{int(row.hold_amount_picos or 0):,} pico-USD"' in answer.content.decode()
    assert looker.get(f"{answer.request['PATH_INFO']}?after=nonsense").status_code == 400


def test_money_is_shown_to_the_last_pico_unit(looker: Client, world: World) -> None:
    from config.readonly_admin import Amount

    assert Amount(1, "USD").exact == "0.000000000001"
    assert Amount(-1_500_000_000_000, "USD").exact == "-1.50"
    assert Amount(10**38 - 1, "USD").exact == f"{10**26 - 1:,}.{'9' * 12}"
    accounts = looker.get("/admin/billing/accounts/").context["table"].rows
    balances, postings = looker.get(accounts[0][0].url).context["tables"]
    assert sum(cells[1].picos for cells in balances.rows) == 0
    entries = looker.get(postings.rows[0][0].url).context["tables"][0]
    assert sum(cells[2].picos for cells in entries.rows) == 0
