"""What the telemetry database refuses, tried through SQL as every login, on tables and on their partitions."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connections

from tests.otlp.make import NOON, llm, sample
from tests.otlp.storing import has_timescale, parts, put, rows, stored

EVENT: dict[str, Any] = {
    "event_id": "e", "occurred_at": NOON, "cluster_id": "7", "source_mode": "gateway", "tenant_name": "t",
    "namespace": "n", "manager_key_id": "k", "model_name": "m", "provider": "p", "prompt_tokens": 1,
    "completion_tokens": 1,
}  # fmt: skip
SAMPLE: dict[str, Any] = {
    "event_id": "e", "occurred_at": NOON, "cluster_id": "7", "source_mode": "per_cluster", "tenant_name": "t",
    "namespace": "n", "resource_type": "cpu", "utilization": 0.5, "above_threshold": False,
}  # fmt: skip
TOO_MUCH = 2**53


def run(statement: str, values: Sequence[Any] = (), *, alias: str = "telemetry") -> None:
    """One statement in a transaction of its own; the connection is new afterwards."""
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(statement, list(values))
    finally:
        connections[alias].close()


def insert(table: str, values: dict[str, Any], **changed: Any) -> None:
    """Insert one row as the owner role."""
    row = {**values, **changed}
    run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", list(row.values()))


@pytest.fixture
def a_day(telemetry: None) -> None:
    """The partition of `NOON` in both tables."""
    run("SELECT telemetry_ensure_days('llm_billing', '{2026-03-04}')")
    run("SELECT telemetry_ensure_days('resource_utilization', '{2026-03-04}')")


@pytest.mark.spec("T4", "T5", "T8")
@pytest.mark.parametrize(
    ("changed", "guard"),
    [
        ({"cluster_id": "0"}, "llm_billing_cluster_decimal"),
        ({"cluster_id": "0x7"}, "llm_billing_cluster_decimal"),
        ({"cluster_id": ""}, "llm_billing_cluster_decimal"),
        ({"source_mode": "other"}, "llm_billing_mode_closed"),
        ({"manager_key_id": None}, "llm_billing_gateway_has_key"),
        ({"event_id": ""}, "llm_billing_texts_not_empty"),
        ({"provider": ""}, "llm_billing_texts_not_empty"),
        ({"manager_key_id": ""}, "llm_billing_empty_is_null"),
        ({"organization_id": ""}, "llm_billing_empty_is_null"),
        ({"prompt_tokens": -1}, "llm_billing_counts"),
        ({"completion_tokens": TOO_MUCH}, "llm_billing_counts"),
        ({"cached_input_tokens": -1}, "llm_billing_cached_count"),
        ({"cached_input_tokens": TOO_MUCH}, "llm_billing_cached_count"),
        ({"tenant_name": None}, "null value"),
        ({"namespace": None}, "null value"),
        ({"model_name": None}, "null value"),
        ({"prompt_tokens": None}, "null value"),
        ({"occurred_at": None}, "(?i)null value|no partition"),
        ({"event_id": "x" * 256}, "value too long"),
        ({"model_name": "x" * 256}, "value too long"),
    ],
)
def test_a_wrong_llm_event_is_refused(a_day: None, changed: dict[str, Any], guard: str) -> None:
    with pytest.raises(Exception, match=guard):
        insert("llm_billing_events", EVENT, **changed)
    insert("llm_billing_events", EVENT)
    with pytest.raises(Exception, match=r"llm_billing_events(_20260304)?_pkey"):
        insert("llm_billing_events", EVENT)


@pytest.mark.spec("T4", "T5")
@pytest.mark.parametrize(
    ("changed", "guard"),
    [
        ({"cluster_id": "07"}, "resource_cluster_decimal"),
        ({"source_mode": ""}, "resource_mode_closed"),
        ({"resource_type": ""}, "resource_texts_not_empty"),
        ({"pod_name": ""}, "resource_empty_is_null"),
        ({"utilization": -0.1}, "resource_utilization_level"),
        ({"utilization": float("nan")}, "resource_utilization_level"),
        ({"utilization": float("inf")}, "resource_utilization_level"),
        ({"above_threshold": None}, "null value"),
        ({"resource_type": None}, "null value"),
    ],
)
def test_a_wrong_resource_event_is_refused(a_day: None, changed: dict[str, Any], guard: str) -> None:
    with pytest.raises(Exception, match=guard):
        insert("resource_utilization_events", SAMPLE, **changed)
    insert("resource_utilization_events", SAMPLE)
    with pytest.raises(Exception, match=r"resource_utilization_events(_20260304)?_pkey"):
        insert("resource_utilization_events", SAMPLE)


@pytest.mark.trap("D30")
@pytest.mark.parametrize("alias", ["telemetry", "telemetry.read", "telemetry.schema"])
@pytest.mark.parametrize("table", ["llm_billing_events", "resource_utilization_events"])
def test_no_login_changes_or_removes_a_stored_event_nor_in_its_partition(
    telemetry: None, table: str, alias: str
) -> None:
    put([llm("e"), sample("e")])
    truncates = [f"TRUNCATE {part}" for part in (table, *([] if has_timescale() else parts(table)))]
    ((holding,),) = rows(f"SELECT tableoid::regclass::text FROM {table}")
    for part in (table, holding):
        for statement in (
            f"UPDATE {part} SET tenant_name = 'x'",
            f"DELETE FROM {part}",
            *truncates,
            f"SELECT set_config('pgtrigger.ignore', '{table}:{{*}}', false); DELETE FROM {part}",
            f"SET session_replication_role = replica; DELETE FROM {part}",
        ):
            with pytest.raises(Exception, match=r"permission denied|never changes"):
                run(statement, alias=alias)
    assert stored(table) == 1


@pytest.mark.spec("T10")
@pytest.mark.parametrize("alias", ["telemetry", "telemetry.read"])
def test_only_the_functions_make_and_remove_days(telemetry: None, alias: str) -> None:
    put([llm("e")])
    part = parts("llm_billing_events")[0]
    for statement in (
        f"DROP TABLE {part}",
        f"ALTER TABLE llm_billing_events DETACH PARTITION {part}",
        "CREATE TABLE mine PARTITION OF llm_billing_events FOR VALUES FROM ('2031-01-01') TO ('2031-01-02')",
        "CREATE TABLE mine (x int)",
        "DO $$ BEGIN LOCK TABLE llm_billing_events IN ACCESS EXCLUSIVE MODE; END $$",
    ):
        with pytest.raises(Exception, match=r"must be owner|permission denied|do not support"):
            run(statement, alias=alias)
    if alias == "telemetry.read":
        for call in (
            "telemetry_ensure_days('llm_billing', '{2030-01-01}')",
            "telemetry_expire_days('llm_billing', now()::date, 1)",
        ):
            with pytest.raises(Exception, match="permission denied"):
                run(f"SELECT {call}", alias=alias)


def test_a_function_takes_no_other_table(telemetry: None) -> None:
    for call in ("telemetry_ensure_days('pg_class', '{2030-01-01}')", "telemetry_expire_days('auth', now()::date, 9)"):
        run(f"SELECT {call}")
    assert rows("SELECT to_regclass('public.pg_class_20300101')") == [(None,)]


def test_a_temporary_table_shadows_nothing_in_the_functions(telemetry: None) -> None:
    with connections["telemetry"].cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE telemetry_retention (kind text, retained_from timestamptz)")
        cursor.execute("INSERT INTO telemetry_retention VALUES ('llm_billing', 'infinity')")
        cursor.execute("SELECT telemetry_ensure_days('llm_billing', '{2021-02-03}')")
    connections["telemetry"].close()
    if has_timescale():
        pytest.skip("chunks make themselves")
    assert rows("SELECT to_regclass('public.llm_billing_events_20210203') IS NOT NULL") == [(True,)]


MIDNIGHT = datetime(2026, 3, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("table", "values", "wrong", "guard"),
    [
        (
            "consumption_windows_dirty",
            {"kind": "llm_billing", "cluster_id": "7", "window_start": MIDNIGHT},
            [({"kind": "x"}, "dirty_window_kind_closed"), ({"cluster_id": "a"}, "dirty_window_cluster_decimal"),
             ({"cleared_generation": 2}, "dirty_window_generations")],
            [("marked_generation = 0", "dirty_window_forward|dirty_window_generations|only grow"),
             ("cleared_generation = 5", "dirty_window_generations")],
        ),
        (
            "telemetry_tallies",
            {"cluster_id": "7", "kind": "llm_billing", "bucket": MIDNIGHT, "accepted": 6, "stored": 1, "duplicates": 2,
             "conflicts": 3},
            [({"accepted": 7}, "tally_adds_up"), ({"stored": -1, "accepted": 4}, "tally_adds_up"),
             ({"kind": "x"}, "tally_kind_closed"), ({"cluster_id": "x"}, "tally_cluster_decimal")],
            [("accepted = 5, duplicates = 1", "only grows"), ("accepted = 9", "tally_adds_up")],
        ),
        (
            "telemetry_drops",
            {"cluster_id": "7", "kind": "llm_billing", "bucket": MIDNIGHT, "reason": "event_id", "dropped": 2},
            [({"dropped": 0}, "drop_counts"), ({"kind": "x"}, "drop_kind_closed"),
             ({"cluster_id": "x"}, "drop_cluster_decimal")],
            [("dropped = 1", "only grows"), ("dropped = 2", "only grows")],
        ),
        (
            "telemetry_identity_scans",
            {"kind": "llm_billing", "scanned_until": MIDNIGHT},
            [({"kind": "x"}, "identity_scan_kind_closed")],
            [("scanned_until = '2026-03-03'", "moves forward")],
        ),
        (
            "telemetry_event_identities",
            {"event_id": "e", "kind": "llm_billing", "occurred_at": MIDNIGHT},
            [({"kind": "x"}, "identity_kind_closed")],
            [("occurred_at = now()", "permission denied")],
        ),
    ],
)  # fmt: skip
def test_what_is_known_about_events_only_grows_and_keeps_its_shape(
    telemetry: None, table: str, values: dict[str, Any], wrong: Any, guard: Any
) -> None:
    for changed, name in wrong:
        with pytest.raises(Exception, match=name):
            insert(table, values, **changed)
    insert(table, values)
    for change, name in guard:
        with pytest.raises(Exception, match=name):
            run(f"UPDATE {table} SET {change}")
    for alias in ("telemetry", "telemetry.read", "telemetry.schema"):
        for statement in (f"DELETE FROM {table}", f"TRUNCATE {table}"):
            with pytest.raises(Exception, match=r"permission denied|never deleted|goes only after"):
                run(statement, alias=alias)
    assert rows(f"SELECT count(*) FROM {table}") == [(1,)]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"kind": "x"}, "conflict_kind_closed"),
        ({"reason": "x"}, "conflict_reason_closed"),
        ({"arrived_sha256": "a" * 63}, "conflict_digest"),
        ({"cluster_id": "x"}, "conflict_clusters_decimal"),
        ({"arrivals": 0}, "conflict_shape"),
        ({"standing_occurred_at": NOON}, "conflict_shape"),
        ({"reason": "two_times"}, "conflict_shape"),
        ({}, "conflict_once"),
    ],
)
def test_a_conflict_keeps_its_shape(telemetry: None, changed: dict[str, Any], name: str) -> None:
    values = {
        "kind": "llm_billing", "reason": "content", "event_id": "e", "occurred_at": MIDNIGHT, "cluster_id": "7",
        "standing_cluster_id": "7", "standing_occurred_at": MIDNIGHT, "fields": "provider", "arrived": "{}",
        "arrived_sha256": "a" * 64,
    }  # fmt: skip
    insert("telemetry_conflicts", values)
    with pytest.raises(Exception, match=name):
        insert("telemetry_conflicts", values, **changed)
