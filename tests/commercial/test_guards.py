"""What must never happen to commercial facts is refused by the database, to every login role."""

import uuid
from dataclasses import dataclass

import orjson
import pytest
from django.db import connections

from billing.commercial import hooks
from billing.commercial.catalogue import read_plans
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.commercial.conftest import swept_now
from tests.commercial.make import AT, BUSINESS, Contract, operation, rows, subscribe
from tests.commercial.notes import write_note

pytestmark = [pytest.mark.usefixtures("business")]

SCHEMA = "billing.schema"
NEW = str(uuid.UUID(int=7))
SHA = "0" * 64


@pytest.fixture(autouse=True)
def world(business: None) -> Contract:
    """A tenant with one settled, one held and one swept reservation, all with costs."""
    from tests.commercial.test_cost import import_costs

    import_costs()
    cost = {"priceBook": "provider-costs", "currency": "USD", "chargeDimensionKey": "notes.written"}
    contract = subscribe(limit=10, cost=cost, tenant="org:guarded")
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    swept_now()
    write_note(contract, "a", "text")
    hooks.reserve(operation(contract, "held"), quantity=1, using=BUSINESS, at=AT)
    return contract


@dataclass(frozen=True, slots=True)
class Copy:
    """The first row of a table, inserted again with these columns changed, each an SQL expression."""

    table: str
    changed: dict[str, str]

    def __str__(self) -> str:
        names = [name for (name,) in rows(COLUMNS, self.table)]
        values = ", ".join(self.changed.get(name, name) for name in names)
        return f"INSERT INTO {self.table} ({', '.join(names)}) SELECT {values} FROM {self.table} LIMIT 1"


COLUMNS = (
    "SELECT attname FROM pg_attribute"
    " WHERE attrelid = %s::regclass AND attnum > 0 AND attidentity = '' AND NOT attisdropped ORDER BY attnum"
)


def insert(table: str, **changed: str) -> Copy:
    return Copy(table, changed)


PLAN = "commercial_plans"
SUBSCRIPTION = "commercial_subscriptions"
PERIOD = "commercial_entitlement_periods"
RESERVATION = "commercial_runtime_reservations"


def of_state(state: str, change: str) -> str:
    return f"UPDATE {RESERVATION} SET {change} WHERE state = '{state}'"


def reservation(**columns: str) -> Copy:
    whole = {
        "reservation_id": f"'{NEW}'", "operation_sha256": f"'{SHA}'", "state": "'reserved'", "generation": "1",
        "ended_at": "NULL", "ended_by": "NULL",
    }  # fmt: skip
    return insert(RESERVATION, **(whole | columns))


def plan(**columns: str) -> Copy:
    whole = {"plan_ref": "'commercial-plan:' || name || ':2'", "plan_version": "2"}
    return insert(PLAN, **(whole | columns))


def forged_plan() -> list[str]:
    """A whole row of a plan that is not stored, whose entitlements and meters are not there."""
    meter = {"tool": "t", "dimension": "d", "quantityBasis": "events", "entitlement": "e"}
    entitlement = {"name": "e", "quantityBasis": "events", "hardLimit": 1}
    data = orjson.dumps([{"name": "p", "planVersion": 1, "entitlements": [entitlement], "meters": [meter]}])
    (made,) = read_plans(data)
    text = orjson.dumps(made.candidate(), option=orjson.OPT_SORT_KEYS).decode()
    return [
        f"INSERT INTO {PLAN} (plan_ref, schema_version, digest_algorithm_version, digest, candidate, name,"
        f" plan_version) VALUES ('commercial-plan:p:1', '1', 'jcs-sha256-v1', encode(sha256('{text}'), 'hex'),"
        f" '{text}', 'p', 1)"
    ]


ENTITLEMENT = (
    "INSERT INTO commercial_entitlements (entitlement_id, plan_id, name, quantity_basis, hard_limit)"
    " VALUES ('commercial-plan:p:1/{name}', 'commercial-plan:p:1', '{name}', '{basis}', {limit})"
)
METER = (
    "INSERT INTO commercial_meters (meter_id, plan_id, entitlement_id, tool, dimension, quantity_basis, cost_currency)"
    " VALUES ('commercial-plan:p:1/{tool}/d', 'commercial-plan:p:1', '{entitlement}', '{tool}', 'd', '{basis}', {cost})"
)


def entitlement(*, name: str = "e", basis: str = "events", limit: str = "1") -> str:
    return ENTITLEMENT.format(name=name, basis=basis, limit=limit)


def meter(
    *, tool: str = "t", entitlement: str = "commercial-plan:p:1/e", basis: str = "events", cost: str = "NULL"
) -> str:
    return METER.format(tool=tool, entitlement=entitlement, basis=basis, cost=cost)


@pytest.mark.spec("C1")
@pytest.mark.parametrize(
    ("constraint", "statements"),
    [
        ("commercial_plan_digest", [plan(digest=f"'{SHA}'")]),
        ("commercial_plan_columns", [plan()]),
        ("commercial_plan_columns", [plan(plan_ref="'commercial-plan:other:1'", name="'other'", plan_version="1")]),
        ("commercial_plan_whole", forged_plan()),
        ("commercial_plan_whole", [*forged_plan(), entitlement()]),
        ("commercial_entitlement_in_plan", [*forged_plan(), entitlement(name="f")]),
        ("commercial_entitlement_in_plan", [*forged_plan(), entitlement(limit="2")]),
        ("commercial_entitlement_in_plan", [*forged_plan(), entitlement(basis="bytes")]),
        ("commercial_meter_in_plan", [*forged_plan(), entitlement(), meter(tool="u")]),
        ("commercial_meter_in_plan", [*forged_plan(), entitlement(), meter(basis="bytes")]),
        ("commercial_meter_cost_whole", [*forged_plan(), entitlement(), meter(cost="'USD'")]),
        ("commercial_meter_unit", [*forged_plan(), meter()]),
        ("commercial_meter_in_plan", [insert("commercial_meters", tool="'other'", meter_id="plan_id || '/other/x'")]),
        ("commercial_subscription_zone", [insert(SUBSCRIPTION, subscription_id="'s'", zone="'Mars/Olympus'")]),
        ("commercial_subscription_one_meter", [insert(SUBSCRIPTION, subscription_id="'s'")]),
        (
            "commercial_subscription_half_open",
            [insert(SUBSCRIPTION, subscription_id="'s'", ends_at="starts_at")],
        ),
        ("commercial_subscription_period_closed", [insert(SUBSCRIPTION, subscription_id="'s'", period_unit="'week'")]),
        ("commercial_subscription_frozen", [f"UPDATE {SUBSCRIPTION} SET zone = 'Europe/Berlin'"]),
        ("commercial_subscription_frozen", [f"UPDATE {SUBSCRIPTION} SET starts_at = starts_at - interval '1 day'"]),
        (
            "commercial_subscription_frozen",
            [f"UPDATE {SUBSCRIPTION} SET ends_at = '2027-01-01'", f"UPDATE {SUBSCRIPTION} SET ends_at = '2028-01-01'"],
        ),
        ("commercial_subscription_ends", [f"UPDATE {SUBSCRIPTION} SET ends_at = starts_at + interval '1 second'"]),
        ("commercial_period_once", [insert(PERIOD, taken_quantity="0")]),
        ("commercial_period_half_open", [insert(PERIOD, taken_quantity="0", starts_at="ends_at")]),
        ("commercial_period_born_empty", [insert(PERIOD, starts_at="ends_at", ends_at="ends_at + interval '1 d'")]),
        (
            "commercial_period_alone",
            [insert(PERIOD, taken_quantity="0", starts_at="ends_at - interval '1 us'", ends_at="ends_at + '1 d'")],
        ),
        (
            "commercial_period_in_contract",
            [insert(PERIOD, taken_quantity="0", starts_at="'2025-12-01'", ends_at="'2026-01-01'")],
        ),
        (
            "commercial_period_of_plan",
            [insert(PERIOD, taken_quantity="0", starts_at="ends_at", ends_at="ends_at + '1 d'", hard_limit="11")],
        ),
        (
            "commercial_period_of_plan",
            [insert(PERIOD, taken_quantity="0", starts_at="ends_at", ends_at="ends_at + '1 d'", tenant_id="'x'")],
        ),
        ("commercial_period_frozen", [f"UPDATE {PERIOD} SET taken_quantity = 0"]),
        ("commercial_period_frozen", [f"UPDATE {PERIOD} SET hard_limit = hard_limit + 1"]),
        ("commercial_period_frozen", [f"UPDATE {PERIOD} SET ends_at = ends_at + interval '1 d'"]),
        ("commercial_period_within_limit", [reservation(quantity="9")]),
        ("commercial_reservation_in_period", [reservation(as_of="as_of + interval '40 d'")]),
        ("commercial_reservation_in_period", [reservation(period_id="0")]),
        ("commercial_reservation_once", [reservation(operation_sha256="operation_sha256")]),
        ("commercial_runtime_reservations_pkey", [reservation(reservation_id="reservation_id")]),
        ("commercial_reservation_hashed", [reservation(operation_sha256="'report.pdf'")]),
        ("commercial_reservation_hashed", [reservation(operation_sha256=f"'{'G' * 64}'")]),
        ("commercial_reservation_hashed", [reservation(business="'Attachments!'")]),
        ("commercial_reservation_born", [reservation(generation="2")]),
        (
            "commercial_reservation_born",
            [reservation(state="'settled'", ended_at="now()", ended_by="'caller'")],
        ),
        ("commercial_reservation_quantity", [reservation(quantity="-1")]),
        ("commercial_reservation_quantity", [reservation(quantity="9007199254740992")]),
        ("commercial_reservation_provider", [reservation(provider_code="'Bank & Co, invoice 7'")]),
        ("commercial_reservation_cost", [reservation(cost_currency="NULL")]),
        ("commercial_reservation_cost", [reservation(unit_cost_picos="-1")]),
        ("commercial_reservation_shape", [reservation(ended_at="now()")]),
        ("commercial_reservation_shape", [of_state("reserved", "state = 'settled'")]),
        (
            "commercial_reservation_shape",
            [of_state("reserved", "state = 'settled', ended_at = now(), ended_by = 'nobody'")],
        ),
        (
            "commercial_reservation_steps",
            [of_state("reserved", "state = 'lost', ended_at = now(), ended_by = 'sweep'")],
        ),
        ("commercial_reservation_frozen", [of_state("reserved", "quantity = 0")]),
        ("commercial_reservation_steps", [of_state("reserved", "generation = 2")]),
        (
            "commercial_reservation_frozen",
            [of_state("reserved", "state = 'settled', ended_at = now(), ended_by = 'sweep', quantity = 0")],
        ),
        (
            "commercial_reservation_frozen",
            [of_state("reserved", "state = 'settled', ended_at = now(), ended_by = 'sweep', meter_id = 'x'")],
        ),
        (
            "commercial_reservation_steps",
            [of_state("settled", "state = 'released', ended_by = 'caller'")],
        ),
        (
            "commercial_reservation_steps",
            [of_state("settled", "state = 'reserved', ended_at = NULL, ended_by = NULL, generation = 2")],
        ),
        (
            "commercial_reservation_steps",
            [of_state("released", "state = 'settled', ended_by = 'caller'")],
        ),
        (
            "commercial_reservation_steps",
            [of_state("released", "state = 'reserved', ended_at = NULL, ended_by = NULL")],
        ),
        (
            "commercial_reservation_steps",
            [of_state("released", "state = 'reserved', ended_at = NULL, ended_by = NULL, generation = 3")],
        ),
        (
            "commercial_reservation_frozen",
            [
                of_state(
                    "released", "state = 'reserved', ended_at = NULL, ended_by = NULL, generation = 2, quantity = 2"
                )
            ],
        ),
        ("usage_meter_event_by_settling", [insert("usage_meter_events", reservation_id=f"'{NEW}'")]),
        ("commercial_cost_event_by_settling", [insert("commercial_cost_events", usage_id=f"'{NEW}'")]),
        ("commercial_sweep_finding_by_ending", [insert("commercial_sweep_findings", generation="2")]),
        ("commercial_identity_key_hashed", [insert("commercial_identity_keys", key_id="'the key'")]),
        ("commercial_identity_keys_singleton_key", [insert("commercial_identity_keys", key_id=f"'{SHA}'")]),
        (
            "commercial_identity_key_only",
            [insert("commercial_identity_keys", key_id=f"'{SHA}'", singleton="false")],
        ),
    ],
)
def test_the_database_refuses(constraint: str, statements: list[str | Copy]) -> None:
    assert refusal_of(SCHEMA, *map(str, statements)) == constraint


LIFTED = "ALTER TABLE {table} DISABLE TRIGGER USER"


@pytest.mark.parametrize(
    ("constraint", "table", "statement"),
    [
        ("commercial_plan_schema_version", PLAN, plan(schema_version="'2'")),
        ("commercial_plan_schema_version", PLAN, plan(plan_version="0", plan_ref="'commercial-plan:' || name || ':0'")),
        ("commercial_plan_ref_says_which", PLAN, plan(plan_version="3")),
        (
            "commercial_entitlement_id_says_which",
            "commercial_entitlements",
            insert("commercial_entitlements", entitlement_id="'x'"),
        ),
        (
            "commercial_entitlement_basis_closed",
            "commercial_entitlements",
            insert("commercial_entitlements", entitlement_id="plan_id || '/x'", name="'x'", quantity_basis="'pages'"),
        ),
        (
            "commercial_entitlement_limit",
            "commercial_entitlements",
            insert("commercial_entitlements", entitlement_id="plan_id || '/x'", name="'x'", hard_limit="-1"),
        ),
        (
            "commercial_meter_id_says_which",
            "commercial_meters",
            insert("commercial_meters", tool="'x'", meter_id="'x'"),
        ),
        ("commercial_meters_pkey", "commercial_meters", insert("commercial_meters")),
        ("commercial_period_within_limit", PERIOD, f"UPDATE {PERIOD} SET taken_quantity = -1"),
        ("usage_meter_events_pkey", "usage_meter_events", insert("usage_meter_events")),
        (
            "commercial_cost_event_exact",
            "commercial_cost_events",
            insert("commercial_cost_events", usage_id=f"'{NEW}'", amount_picos="amount_picos + 1"),
        ),
        (
            "commercial_cost_event_currency",
            "commercial_cost_events",
            insert("commercial_cost_events", usage_id=f"'{NEW}'", currency="'usd'"),
        ),
        (
            "commercial_sweep_finding_outcome",
            "commercial_sweep_findings",
            insert("commercial_sweep_findings", generation="2", outcome="'reserved'"),
        ),
        ("commercial_sweep_findings_pkey", "commercial_sweep_findings", insert("commercial_sweep_findings")),
    ],
)
def test_the_constraints_hold_where_the_guards_in_front_of_them_are_lifted(
    constraint: str, table: str, statement: str | Copy
) -> None:
    assert refusal_of(SCHEMA, LIFTED.format(table=table), str(statement)) == constraint


GUARDS = {
    PLAN: ("commercial_plan", "name = 'x'"),
    "commercial_entitlements": ("commercial_entitlement", "hard_limit = 99"),
    "commercial_meters": ("commercial_meter", "tool = 'x'"),
    SUBSCRIPTION: ("commercial_subscription", "plan_id = 'x'"),
    PERIOD: ("commercial_period", "taken_quantity = 7"),
    RESERVATION: ("commercial_reservation", "quantity = 7"),
    "commercial_identity_keys": ("commercial_identity_key", f"key_id = '{SHA}'"),
    "usage_meter_events": ("usage_meter_event", "quantity = 7"),
    "commercial_cost_events": ("commercial_cost_event", "currency = 'EUR'"),
    "commercial_sweep_findings": ("commercial_sweep_finding", "outcome = 'settled'"),
}


@pytest.mark.trap("D30")
@pytest.mark.parametrize("table", GUARDS)
def test_no_role_changes_deletes_or_truncates_and_no_setting_opens_a_guard(table: str) -> None:
    guard, change = GUARDS[table]
    attempts = (f"UPDATE {table} SET {change}", f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE")
    for alias in ("billing", "billing.dispatch", "billing.read"):
        for statement in attempts:
            assert refusal_of(alias, "SET pgtrigger.ignore = 'all'", statement) == NO_PRIVILEGE
    answers = [refusal_of(SCHEMA, "SET pgtrigger.ignore = 'all'", statement) for statement in attempts]
    assert answers[0] in {f"{guard}_kept", f"{guard}_frozen", f"{guard}_steps"}
    assert answers[1] in {f"{guard}_kept", f"{guard}_delete"}
    assert answers[2].endswith("_truncate")


@pytest.mark.parametrize("alias", ["billing", "billing.dispatch", "billing.read"])
def test_no_login_writes_what_only_the_functions_write(alias: str) -> None:
    written = {
        PERIOD: {"taken_quantity": "0", "starts_at": "ends_at", "ends_at": "ends_at + '1 d'"},
        "commercial_identity_keys": {"key_id": f"'{SHA}'"},
        "usage_meter_events": {"reservation_id": f"'{NEW}'"},
        "commercial_cost_events": {"usage_id": f"'{NEW}'"},
        "commercial_sweep_findings": {"generation": "2"},
    }
    for table, columns in written.items():
        assert refusal_of(alias, str(insert(table, **columns))) == NO_PRIVILEGE
    assert refusal_of(alias, str(reservation())) == NO_PRIVILEGE
    assert refusal_of(alias, "SELECT commercial_open_period('a', 'b', 'c', now(), 'd')") == NO_PRIVILEGE
    assert refusal_of(alias, "SELECT commercial_held(1)") == NO_PRIVILEGE
    if alias != "billing":
        assert refusal_of(alias, f"SELECT commercial_release('{NEW}', 1, 'caller')") == NO_PRIVILEGE
        assert refusal_of(alias, of_state("reserved", "state = 'settled'")) == NO_PRIVILEGE


def test_the_owner_cannot_make_of_an_end_what_the_guards_forbid() -> None:
    held = rows(f"SELECT reservation_id FROM {RESERVATION} WHERE state = 'reserved'")[0][0]
    for change, refused in (
        ("state = 'lost', ended_at = now(), ended_by = 'caller'", "commercial_reservation_steps"),
        ("state = 'reserved', ended_by = 'caller'", "commercial_reservation_steps"),
        ("state = 'settled', ended_at = now(), ended_by = 'nobody'", "commercial_reservation_shape"),
    ):
        assert refusal_of("billing", of_state("reserved", change)) == refused
    assert refusal_of("billing", f"SELECT commercial_release('{held}', 1, 'nobody')") == "commercial_reservation_shape"
    with connections["billing"].cursor() as cursor:
        cursor.execute("SELECT commercial_release(%s, 2, 'caller')", [held])
        assert cursor.fetchone() == (False,)
