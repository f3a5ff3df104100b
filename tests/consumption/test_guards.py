"""What the database itself refuses about consumption, for every login role."""

import pytest

from metering.consumption.window import ALIAS
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.consumption.make import learn, llm, receive, sample, swept
from tests.telemetry_charges.make import payer

TABLES = ("consumption_window_length", "consumption_windows", "consumption_lines", "consumption_charges")
LINE = (
    "kind, cluster_id, window_start, source_mode, manager_key_id, stated_organization_id, namespace, robot_id, cr_name,"
    " applies_to, provider"
)
MEASURES = (
    "organization_id, orphan_reason, events, prompt_tokens, completion_tokens, cached_input_tokens,"
    " samples_above_threshold, utilization_micros, utilization_max, released_at"
)
CHARGE = "kind, cluster_id, window_start, window_end, organization_id, applies_to"
ROLES = [ALIAS, "telemetry.schema"]


@pytest.fixture(autouse=True)
def some_consumption(database: None) -> None:
    """Two windows: a posted charge with its line and an orphan; a line of samples whose charge is refused."""
    payer()
    learn(k101="org-1")
    receive(llm(), llm(manager_key_id="404"))
    receive(sample(organization_id="org-2", above_threshold=True), mode="per_cluster")
    swept()


def another_line(where: str, **changed: str) -> str:
    """A copy of a line with some columns changed, and the digest of what tells it apart now."""
    told = [changed.get(name, name) for name in LINE.split(", ")]
    measured = [changed.get(name, name) for name in MEASURES.split(", ")]
    digest = changed.get("line_sha256", f"consumption_line_sha256({', '.join(told)})")
    return (
        f"INSERT INTO consumption_lines (line_sha256, {LINE}, {MEASURES})"
        f" SELECT {digest}, {', '.join(told)}, {', '.join(measured)} FROM consumption_lines WHERE {where}"
    )


OF_GATEWAY, ORPHAN, SAMPLE = "organization_id = 'org-1'", "orphan_reason IS NOT NULL", "organization_id = 'org-2'"


@pytest.mark.parametrize("alias", ROLES)
@pytest.mark.parametrize(
    ("constraint", "where", "changed"),
    [
        ("consumption_lines_line_sha256_key", OF_GATEWAY, {}),
        ("consumption_line_digest", OF_GATEWAY, {"line_sha256": "repeat('0', 64)"}),
        ("consumption_line_digest", OF_GATEWAY, {"line_sha256": "'x'"}),
        ("consumption_line_kind_closed", OF_GATEWAY, {"kind": "'other'"}),
        ("consumption_line_mode_closed", SAMPLE, {"source_mode": "'other'"}),
        ("consumption_line_told_apart", OF_GATEWAY, {"manager_key_id": "NULL"}),
        ("consumption_line_told_apart", OF_GATEWAY, {"robot_id": "'r'"}),
        ("consumption_line_told_apart", OF_GATEWAY, {"stated_organization_id": "'org-1'"}),
        ("consumption_line_own_organization", OF_GATEWAY, {"source_mode": "'per_cluster'"}),
        ("consumption_line_told_apart", SAMPLE, {"namespace": "NULL"}),
        ("consumption_line_told_apart", SAMPLE, {"manager_key_id": "'1'"}),
        ("consumption_line_measures", OF_GATEWAY, {"applies_to": "'x'", "prompt_tokens": "NULL"}),
        ("consumption_line_measures", OF_GATEWAY, {"applies_to": "'x'", "completion_tokens": "-1"}),
        ("consumption_line_measures", OF_GATEWAY, {"applies_to": "'x'", "samples_above_threshold": "0"}),
        ("consumption_line_measures", SAMPLE, {"applies_to": "'x'", "samples_above_threshold": "2"}),
        ("consumption_line_measures", SAMPLE, {"applies_to": "'x'", "prompt_tokens": "0"}),
        ("consumption_line_attributed_or_orphan", OF_GATEWAY, {"applies_to": "'x'", "organization_id": "NULL"}),
        ("consumption_line_attributed_or_orphan", OF_GATEWAY, {"applies_to": "'x'", "orphan_reason": "'unknown_key'"}),
        ("consumption_line_attributed_or_orphan", ORPHAN, {"applies_to": "'x'", "orphan_reason": "'no_organization'"}),
        ("consumption_line_attributed_or_orphan", ORPHAN, {"applies_to": "'x'", "orphan_reason": "NULL"}),
        (
            "consumption_line_attributed_or_orphan",
            SAMPLE,
            {"applies_to": "'x'", "organization_id": "NULL", "orphan_reason": "'untrusted'"},
        ),
        ("consumption_line_own_organization", SAMPLE, {"applies_to": "'x'", "organization_id": "'org-thief'"}),
        ("consumption_line_own_organization", SAMPLE, {"source_mode": "'gateway'"}),
        ("consumption_line_own_organization", SAMPLE, {"stated_organization_id": "NULL"}),
        ("consumption_line_released", SAMPLE, {"applies_to": "'x'", "released_at": "now()"}),
        ("consumption_line_released", ORPHAN, {"applies_to": "'x'", "released_at": "now()"}),
        ("consumption_line_in_window", OF_GATEWAY, {"cluster_id": "'9'"}),
    ],
)
def test_a_line_of_no_sense_is_refused(alias: str, constraint: str, where: str, changed: dict[str, str]) -> None:
    assert refusal_of(alias, another_line(where, **changed)) == constraint


@pytest.mark.parametrize(
    ("guard", "where", "change"),
    [
        ("consumption_line_frozen", OF_GATEWAY, "applies_to = 'x'"),
        ("consumption_line_frozen", OF_GATEWAY, "line_sha256 = repeat('0', 64)"),
        ("consumption_line_attributed_once", OF_GATEWAY, "organization_id = 'org-thief'"),
        ("consumption_line_attributed_once", OF_GATEWAY, "organization_id = NULL, orphan_reason = 'unknown_key'"),
        ("consumption_window_forward", None, "revision = 0"),
        ("consumption_window_forward", None, "aggregated_generation = 0"),
        ("consumption_window_forward", None, "window_end = window_end + interval '1 hour'"),
        ("consumption_window_shape", None, "aggregated_at = NULL"),
        ("consumption_charge_frozen", "state = 'posted'", "organization_id = 'org-thief'"),
        ("consumption_charge_frozen", "state = 'posted'", "charge_id = 'x'"),
        ("consumption_charge_generations_grow", "state = 'posted'", "input_tokens = 1"),
        ("consumption_charge_generations_grow", "state = 'posted'", "generation = 0"),
        ("consumption_charge_steps", "state = 'posted'", "state = 'refused', refusal = 'x', ask_after = now()"),
        ("consumption_charge_steps", "state = 'posted'", "state = 'lost'"),
        ("consumption_charge_shape", "state = 'posted'", "generation = 2"),
        ("consumption_charge_shape", "state = 'posted'", "ask_after = now()"),
        ("consumption_charge_shape", "state = 'refused'", "ask_after = NULL"),
        ("consumption_charge_shape", "state = 'refused'", "refusal = NULL"),
        ("consumption_charge_shape", "state = 'refused'", "state = 'posted', ask_after = NULL, refusal = NULL"),
        ("consumption_charge_shape", "state = 'refused'", "state = 'conflicting', ask_after = NULL, refusal = NULL"),
        ("consumption_charge_posted_whole", "state = 'posted'", "amount_picos = NULL"),
        ("consumption_charge_posted_whole", "state = 'refused'", "currency = 'USD'"),
        ("consumption_charge_quantities", "state = 'refused'", "generation = 2, samples = -1"),
        ("consumption_charge_quantities", "state = 'refused'", "generation = 2, input_tokens = 1"),
    ],
)
def test_a_change_of_no_sense_is_refused(guard: str, where: str | None, change: str) -> None:
    table = guard.rsplit("_", 1)[0]
    table = next(
        name for name in ("consumption_line", "consumption_window", "consumption_charge") if guard.startswith(name)
    )
    statement = f"UPDATE {table}s SET {change} WHERE {where or 'revision = 1'}"
    assert refusal_of("telemetry.schema", statement) == guard


@pytest.mark.parametrize("alias", ROLES)
@pytest.mark.parametrize(
    ("constraint", "changed"),
    [
        ("consumption_charge_once", {}),
        ("consumption_charge_kind_closed", {"kind": "'other'"}),
        ("consumption_charge_in_window", {"cluster_id": "'9'"}),
    ],
)
def test_a_charge_of_no_sense_is_refused(alias: str, constraint: str, changed: dict[str, str]) -> None:
    values = ", ".join(changed.get(name, name) for name in CHARGE.split(", "))
    statement = f"INSERT INTO consumption_charges ({CHARGE}) SELECT {values} FROM consumption_charges WHERE samples = 0"
    found = refusal_of(alias, statement)
    assert found == constraint or (constraint.endswith("kind_closed") and found == "consumption_charge_quantities")


def test_a_charge_begins_as_due() -> None:
    statement = (
        f"INSERT INTO consumption_charges ({CHARGE}, state, ask_after, refusal) SELECT kind, cluster_id, window_start,"
        " window_end, 'x', 'x', 'refused', now(), 'x' FROM consumption_charges WHERE samples = 0"
    )
    assert refusal_of(ALIAS, statement) == "consumption_charge_born_due"


@pytest.mark.trap("M5")
@pytest.mark.parametrize("alias", ROLES)
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-03-04 11:00+00", "2026-03-04 13:00+00"),
        ("2026-03-04 11:00:00.000001+00", "2026-03-04 12:00:00.000001+00"),
        ("2026-03-04 11:30+00", "2026-03-04 12:30+00"),
        ("2026-03-04 12:00+00", "2026-03-04 11:00+00"),
        ("infinity", "infinity"),
    ],
)
def test_a_window_of_another_length_or_beginning_is_refused(alias: str, start: str, end: str) -> None:
    statement = (
        "INSERT INTO consumption_windows (kind, cluster_id, window_start, window_end)"
        f" VALUES ('llm_billing', '7', '{start}', '{end}')"
    )
    assert refusal_of(alias, statement) in {"consumption_window_length", "22008"}


@pytest.mark.trap("D30")
def test_a_temporary_table_of_the_same_name_deceives_no_guard() -> None:
    shadow = "CREATE TEMPORARY TABLE consumption_window_length AS SELECT true AS single, 60 AS seconds"
    window = (
        "INSERT INTO consumption_windows (kind, cluster_id, window_start, window_end)"
        " VALUES ('llm_billing', '7', '2026-03-04 11:01+00', '2026-03-04 11:02+00')"
    )
    assert refusal_of(ALIAS, shadow, window) == "consumption_window_length"


def test_there_is_one_length_for_ever() -> None:
    second = "INSERT INTO consumption_window_length (single, seconds) VALUES ({}, 60)"
    assert refusal_of("telemetry.schema", second.format("false")) == "consumption_window_length_one"
    assert refusal_of("telemetry.schema", second.format("true")) == "consumption_window_length_pkey"
    too_long = "INSERT INTO consumption_window_length (seconds) VALUES (86401)"
    assert refusal_of("telemetry.schema", too_long) == "consumption_window_length_bounds"


COLUMN = {
    "consumption_window_length": "seconds",
    "consumption_windows": "window_end",
    "consumption_lines": "applies_to",
    "consumption_charges": "organization_id",
}


@pytest.mark.trap("D30")
@pytest.mark.parametrize("table", TABLES)
def test_nothing_that_was_counted_goes_and_nobody_but_the_owner_writes(table: str) -> None:
    ignore, column = "SET pgtrigger.ignore = 'all'", COLUMN[table]
    for statement in (f"UPDATE {table} SET {column} = {column}", f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
        for alias in (ALIAS, "telemetry.read"):
            assert refusal_of(alias, ignore, statement) == NO_PRIVILEGE
    for statement in (f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
        found = refusal_of("telemetry.schema", ignore, statement)
        assert found.endswith(("_delete", "_kept", "_truncate"))
