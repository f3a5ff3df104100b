"""Plans, subscriptions and operations for tests, made by the project's own code; and what the databases say."""

import itertools
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import orjson
from django.db import connections

from billing.commercial.catalogue import import_plan, read_plans
from billing.commercial.hooks import Operation
from billing.commercial.subscriptions import open_subscription, read_subscriptions

AT = datetime(2026, 7, 17, 12, 0, tzinfo=UTC)
BUSINESS = "attachments"
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Contract:
    """A tenant with a subscription."""

    tenant_id: str
    subscription_id: str
    plan: str


def plan(
    *,
    limit: int = 10,
    basis: str = "events",
    tool: str = "notes",
    dimension: str = "note.write",
    cost: dict[str, str] | None = None,
    name: str | None = None,
    version: int = 1,
) -> str:
    """Import a plan with one entitlement and one meter; its name."""
    name = name or f"plan-{uuid.uuid4().hex[:12]}"
    meter: dict[str, Any] = {
        "tool": tool, "dimension": dimension, "quantityBasis": basis, "entitlement": "all",
    }  # fmt: skip
    written = {
        "name": name,
        "planVersion": version,
        "entitlements": [{"name": "all", "quantityBasis": basis, "hardLimit": limit}],
        "meters": [meter | ({"cost": cost} if cost else {})],
    }
    for one in read_plans(orjson.dumps([written])):
        import_plan(one)
    return name


def subscribe(
    *,
    plan_name: str | None = None,
    tenant: str | None = None,
    zone: str = "UTC",
    period: str = "month",
    starts_on: str = "2026-01-01",
    ends_on: str | None = None,
    **of_plan: Any,
) -> Contract:
    """A tenant subscribed to a plan of its own, or to the one that is named."""
    number = next(_numbers)
    plan_name = plan_name or plan(**of_plan)
    tenant = tenant or f"org:{number}-{uuid.uuid4().hex[:8]}"
    written = {
        "subscriptionId": f"subscription:{number}-{uuid.uuid4().hex[:8]}",
        "tenantKind": "organization",
        "tenantId": tenant,
        "plan": plan_name,
        "planVersion": 1,
        "zone": zone,
        "period": period,
        "startsOn": starts_on,
    } | ({"endsOn": ends_on} if ends_on else {})
    (file,) = read_subscriptions(orjson.dumps([written]))
    open_subscription(file)
    return Contract(tenant, file.subscription_id, plan_name)


def operation(  # the fields of an operation
    contract: Contract | None,
    *identity: str,
    basis: Literal["events", "bytes"] = "events",
    tool: str = "notes",
    dimension: str = "note.write",
    provider: str | None = None,
) -> Operation:
    """An operation of the tenant, a new one unless `identity` names it."""
    return Operation(
        tenant_kind="organization",
        tenant_id=contract.tenant_id if contract else "org:without-contract",
        tool=tool,
        dimension=dimension,
        quantity_basis=basis,
        identity=identity or (uuid.uuid4().hex,),
        provider_code=provider,
    )


def rows(statement: str, *values: Any, alias: str = "billing.read") -> list[tuple[Any, ...]]:
    """What a query answers."""
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, list(values) or None)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


FULL = """
SELECT coalesce(sum(p.taken_quantity - h.held), 0)::bigint, coalesce(sum(h.held), 0)::bigint
  FROM commercial_entitlement_periods p
 CROSS JOIN LATERAL (SELECT coalesce(sum(r.quantity), 0) AS held FROM commercial_runtime_reservations r
                      WHERE r.period_id = p.period_id AND r.state = 'reserved') h
"""


def used_and_held() -> tuple[int, int]:
    """Over all periods there are."""
    used, held = rows(FULL)[0]
    return used, held


def usage() -> int:
    """The sum of all usage events."""
    return int(rows("SELECT coalesce(sum(quantity), 0) FROM usage_meter_events")[0][0])


def states() -> list[tuple[str, int, str | None]]:
    """State, generation and who ended it, of every reservation in the order in which they were made."""
    found = rows("SELECT state, generation, ended_by FROM commercial_runtime_reservations ORDER BY reservation_id")
    return [(state, generation, ended_by) for state, generation, ended_by in found]


def markers() -> list[tuple[str, int, str]]:
    """Kind, generation and verdict of every marker, in the order of their subjects."""
    found = rows(
        "SELECT kind, generation, verdict FROM commercial_markers ORDER BY subject_id, generation",
        alias="attachments.read",
    )
    return [(kind, generation, verdict) for kind, generation, verdict in found]


COMMERCIAL = (
    "commercial_entitlement_periods",
    "commercial_runtime_reservations",
    "commercial_identity_keys",
    "usage_meter_events",
    "commercial_cost_events",
    "commercial_sweep_findings",
)
"""The tables that operations write."""


def nothing_is_written() -> bool:
    """No operation left anything, at billing or beside the business."""
    counts = " + ".join(f"(SELECT count(*) FROM {table})" for table in COMMERCIAL)
    return rows(f"SELECT {counts}") == [(0,)] and markers() == []
