"""Plans are imported once and never changed; subscriptions are opened, and ended once; the command does both."""

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from billing.commercial import hooks
from billing.commercial.catalogue import import_plan, read_plans
from billing.commercial.contracts import CommercialPlan
from billing.commercial.errors import (
    PlanConflict,
    PlanInvalid,
    SubscriptionConflict,
    SubscriptionInvalid,
    UnknownSubscription,
)
from billing.commercial.models import Entitlement, Meter, StoredPlan, Subscription
from billing.commercial.subscriptions import end_subscription, open_subscription, read_subscriptions
from tests.commercial.make import AT, BUSINESS, operation, plan, rows, subscribe
from tests.conftest import ROOT
from tests.upstream.threads import in_threads

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.spec("C1")]

RunCommand = Callable[..., "subprocess.CompletedProcess[str]"]
DEMO = ROOT / "deploy" / "demo"
PLAN: dict[str, Any] = {
    "name": "team",
    "planVersion": 1,
    "entitlements": [
        {"name": "uploads", "quantityBasis": "bytes", "hardLimit": 100},
        {"name": "events", "quantityBasis": "events", "hardLimit": 10},
    ],
    "meters": [
        {"tool": "storage", "dimension": "attachment.upload", "quantityBasis": "bytes", "entitlement": "uploads"},
        {"tool": "connector", "dimension": "financial.ingest", "quantityBasis": "events", "entitlement": "events"},
    ],
}


def read(**changed: Any) -> CommercialPlan:
    (made,) = read_plans(orjson.dumps([PLAN | changed]))
    return made


def test_a_plan_is_stored_with_its_entitlements_and_meters_and_importing_it_again_changes_nothing() -> None:
    made = read()
    assert [import_plan(made), import_plan(made)] == [True, False]
    assert (StoredPlan.objects.count(), Entitlement.objects.count(), Meter.objects.count()) == (1, 2, 2)
    stored = StoredPlan.objects.get()
    again = CommercialPlan.from_wire(
        {**orjson.loads(stored.candidate), "commercialPlanRef": stored.plan_ref, "commercialPlanDigest": stored.digest}
    )
    assert again.ensure_digest() == made


def test_the_order_in_the_file_means_nothing() -> None:
    turned = read(entitlements=PLAN["entitlements"][::-1], meters=PLAN["meters"][::-1])
    assert turned.reference == read().reference


def test_another_content_under_the_same_version_is_a_conflict_and_the_next_version_is_another_plan() -> None:
    import_plan(read())
    with pytest.raises(PlanConflict):
        import_plan(read(entitlements=[PLAN["entitlements"][0] | {"hardLimit": 5}, PLAN["entitlements"][1]]))
    assert import_plan(read(planVersion=2)) is True


def test_the_same_plan_imported_eight_times_at_once_is_stored_once() -> None:
    assert sorted(in_threads([partial(import_plan, read())] * 8)) == [False] * 7 + [True]


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "Team plan"},
        {"planVersion": 0},
        {"entitlements": []},
        {"entitlements": [*PLAN["entitlements"], PLAN["entitlements"][0]]},
        {"entitlements": [{"name": "uploads", "quantityBasis": "pages", "hardLimit": 1}]},
        {"entitlements": [{"name": "uploads", "quantityBasis": "bytes", "hardLimit": -1}]},
        {"entitlements": [{"name": "uploads", "quantityBasis": "bytes", "hardLimit": 2**53}]},
        {"meters": [*PLAN["meters"], PLAN["meters"][0]]},
        {"meters": [PLAN["meters"][0] | {"tool": "Storage!"}]},
        {"meters": [PLAN["meters"][0] | {"cost": {"priceBook": "costs", "currency": "USD"}}]},
        {"surplus": 1},
    ],
)
def test_a_catalogue_without_form_is_refused_and_names_the_field(changed: dict[str, Any]) -> None:
    with pytest.raises(PlanInvalid):
        read(**changed)


@pytest.mark.parametrize("changed", [{"quantityBasis": "events"}, {"entitlement": "other"}])
def test_a_meter_that_does_not_fit_its_entitlement_stores_nothing(changed: dict[str, str]) -> None:
    with pytest.raises(PlanInvalid, match="unit of its entitlement"):
        import_plan(read(meters=[PLAN["meters"][0] | changed, PLAN["meters"][1]]))
    assert StoredPlan.objects.count() == 0


def subscription(**changed: Any) -> bool:
    written = {
        "subscriptionId": "subscription:1",
        "tenantKind": "organization",
        "tenantId": "org:1",
        "plan": "team",
        "planVersion": 1,
        "zone": "Europe/Berlin",
        "period": "month",
        "startsOn": "2026-07-01",
    }
    (file,) = read_subscriptions(orjson.dumps([written | changed]))
    return open_subscription(file)


@pytest.mark.trap("M5")
def test_a_subscription_begins_with_the_first_moment_of_its_day_in_its_zone() -> None:
    import_plan(read())
    assert [subscription(), subscription()] == [True, False]
    stored = Subscription.objects.get()
    assert stored.starts_at == datetime(2026, 6, 30, 22, tzinfo=UTC)
    skipped = subscription(
        subscriptionId="s2", tenantId="org:2", zone="America/Sao_Paulo", startsOn="2017-10-15", endsOn="2017-10-16"
    )
    assert skipped is True
    found = Subscription.objects.get(subscription_id="s2")
    assert (found.starts_at, found.ends_at) == (
        datetime(2017, 10, 15, 3, tzinfo=UTC),
        datetime(2017, 10, 16, 2, tzinfo=UTC),
    )


def test_what_is_open_with_other_properties_is_a_conflict() -> None:
    import_plan(read())
    subscription()
    for changed in (
        {"tenantId": "org:2"},
        {"zone": "UTC"},
        {"period": "day"},
        {"startsOn": "2026-07-02"},
        {"endsOn": "2027-01-01"},
    ):
        with pytest.raises(SubscriptionConflict):
            subscription(**changed)
    end_subscription(subscription_id="subscription:1", at=AT)
    assert subscription() is False, "that it was ended is no difference"


@pytest.mark.parametrize(
    "changed",
    [
        {"plan": "unknown"},
        {"planVersion": 2},
        {"zone": "Mars/Olympus"},
        {"zone": "FOO+3"},
        {"startsOn": "2026-02-30"},
        {"startsOn": "2026-7-1"},
        {"endsOn": "2026-07-01"},
        {"period": "week"},
        {"tenantKind": "robot"},
        {"surplus": 1},
    ],
)
def test_a_subscription_to_what_does_not_exist_is_refused(changed: dict[str, Any]) -> None:
    import_plan(read())
    with pytest.raises(SubscriptionInvalid):
        subscription(**changed)
    assert Subscription.objects.count() == 0


def test_a_subscription_ends_once_and_not_before_a_period_that_was_opened() -> None:
    contract = subscribe()
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    ending = partial(end_subscription, subscription_id=contract.subscription_id)
    with pytest.raises(SubscriptionConflict):
        ending(at=datetime(2026, 6, 15, tzinfo=UTC))
    with pytest.raises(SubscriptionConflict):
        ending(at=datetime(2025, 6, 15, tzinfo=UTC))
    assert [ending(at=AT), ending(at=AT)] == [True, False]
    with pytest.raises(SubscriptionConflict):
        ending(at=datetime(2027, 1, 1, tzinfo=UTC))
    with pytest.raises(UnknownSubscription):
        end_subscription(subscription_id="nobody", at=AT)
    assert rows("SELECT ends_at FROM commercial_entitlement_periods") == [(AT,)]


def test_two_subscriptions_that_would_count_the_same_opened_at_once_are_one() -> None:
    name = plan()

    def open_one(number: int) -> str:
        try:
            subscribe(plan_name=name, tenant="org:same")
        except hooks.AmbiguousMeter:
            return "refused"
        return "opened"

    assert sorted(in_threads([partial(open_one, number) for number in range(6)])) == ["opened"] + ["refused"] * 5


def test_the_command_imports_subscribes_shows_ends_and_sweeps(run_command: RunCommand, tmp_path: Path) -> None:
    imported = run_command("commercial", "import-plans", str(DEMO / "plans.json"))
    assert (imported.returncode, imported.stdout.split()[0]) == (0, "commercial-plan:team:1"), imported.stderr
    again = run_command("commercial", "import-plans", str(DEMO / "plans.json"))
    assert "nothing changed" in again.stdout
    opened = run_command("commercial", "subscribe", str(DEMO / "subscriptions.json"))
    assert opened.stdout.strip() == "opened 3 of 3 subscriptions", opened.stderr
    subscribed = json.loads((DEMO / "subscriptions.json").read_text())[0]
    wanted = hooks.Operation(
        tenant_kind=subscribed["tenantKind"], tenant_id=subscribed["tenantId"], tool="storage",
        dimension="attachment.upload", quantity_basis="bytes", identity=("session", "1"),
    )  # fmt: skip
    hooks.reserve(wanted, quantity=7, using=BUSINESS, at=AT)
    shown = run_command("commercial", "show", subscribed["subscriptionId"]).stdout
    assert "used 0, held 7, free 999999993 of 1000000000" in shown
    assert subscribed["tenantId"] in run_command("commercial", "show").stdout
    swept = run_command("commercial", "sweep", "--held-for", "0")
    assert (swept.returncode, swept.stdout.strip()) == (
        0,
        "attachments: settled 0, released 1, still at work 0, failed 0",
    )
    ended = run_command("commercial", "end", subscribed["subscriptionId"], "--at", "2026-08-01T00:00:00Z")
    assert ended.stdout.strip() == "ended", ended.stderr
    broken = tmp_path / "broken.json"
    broken.write_text("[{}]")
    for arguments in (
        ("import-plans", str(broken)),
        ("import-plans", str(tmp_path / "nothing")),
        ("subscribe", str(broken)),
        ("show", "nobody"),
        ("end", "nobody", "--at", "2026-08-01T00:00:00Z"),
        ("end", "nobody", "--at", "2026-08-01"),
    ):
        refused = run_command("commercial", *arguments)
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr
