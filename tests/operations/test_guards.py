"""Every constraint and guard of the projection's tables, tried through SQL (house style 2)."""

import pytest
from django.apps import apps

from config.owners import Role, owner_named
from tests.operations.breaking import REDIGESTED, copy_row, fill_every_table, refusal
from tests.operations.make import one, rows

CORE = owner_named("core")
SCHEMA, OWNER = CORE.schema_alias, CORE.alias
MODELS = [*apps.get_app_config("projector").get_models(), *apps.get_app_config("timelines").get_models()]
TABLES = sorted(model._meta.db_table for model in MODELS)
RECEIPTS, SOURCES = "operations_projection_applied_receipts", "operations_source_events"
GUARDED, CHECKED = "OB100", "23514"
UNIQUE = "23505"
DENIED = "42501"

NOTHING = {
    "reservation_event_id": "NULL::uuid",
    "currency": "NULL::text",
    "hold_amount_picos": "NULL::numeric",
    "reserved_at": "NULL::timestamptz",
}
FORGED_ROWS: list[tuple[str, str, dict[str, str], dict[str, str]]] = [
    ("operations_receipt_consumer", RECEIPTS, {"consumer_name": "'somebody'"}, REDIGESTED),
    ("operations_receipt_algorithm", RECEIPTS, {"event_envelope_digest_algorithm_version": "'md5'"}, REDIGESTED),
    ("operations_receipt_digest", RECEIPTS, {"event_envelope_sha256": "repeat('a', 64)"}, {}),
    ("operations_receipt_digest", RECEIPTS, {"event_id": "gen_random_uuid()"}, {}),
    ("operations_receipt_digest", RECEIPTS, {"projection_version": "'2'"}, {}),
    ("operations_receipt_digest", RECEIPTS, {"event_type": "'other@1'"}, {}),
    ("operations_receipt_digest", RECEIPTS, {"receipt_digest": "repeat('0', 64)"}, {}),
    ("operations_receipt_words", RECEIPTS, {"event_type": """'a","eventType":"b'"""}, REDIGESTED),
    ("operations_receipt_words", RECEIPTS, {"projection_name": r"'a\'"}, REDIGESTED),
    ("operations_receipt_words", RECEIPTS, {"event_envelope_sha256": "'short'"}, REDIGESTED),
    ("operations_projection_applied_receipts_pkey", RECEIPTS, {"producer": "'billing'"}, {}),
    ("operations_source_not_core", SOURCES, {"producer": "'core'"}, {}),
    ("operations_source_algorithm", SOURCES, {"event_envelope_digest_algorithm_version": "'md5'"}, {}),
    ("operations_source_digest", SOURCES, {"event_envelope_sha256": "repeat('a', 64)"}, {}),
    ("operations_source_columns", SOURCES, {"event_id": "gen_random_uuid()"}, {}),
    ("operations_source_columns", SOURCES, {"event_type": "'other@1'"}, {}),
    ("operations_source_columns", SOURCES, {"schema_version": "'9'"}, {}),
    ("operations_source_columns", SOURCES, {"aggregate_id": "'other'"}, {}),
    ("operations_source_columns", SOURCES, {"aggregate_revision": "7"}, {}),
    (
        "operations_source_columns",
        SOURCES,
        {"event_envelope": "'{}'", "event_envelope_sha256": "encode(sha256('{}'), 'hex')"},
        {},
    ),
    (
        "operations_source_one_per_fact",
        SOURCES,
        {
            "event_envelope": "replace(event_envelope, event_id::text, '01900000-0000-7000-8000-000000000000')",
            "event_id": "'01900000-0000-7000-8000-000000000000'::uuid",
        },
        {"event_envelope_sha256": "encode(sha256(convert_to(event_envelope, 'UTF8')), 'hex')"},
    ),
    ("projection_aggregate_from_0", "projection_aggregates", {"applied_revision": "-1", "aggregate_id": "'x'"}, {}),
    ("revision_gap_born_open", "revision_gaps", {"state": "'resolved'", "resolved_at": "now()"}, {}),
    ("revision_gap_misses_something", "revision_gaps", {"missing_from": "waiting_revision"}, {}),
    ("revision_gap_misses_something", "revision_gaps", {"missing_from": "0"}, {}),
    ("revision_gap_state_closed", "revision_gaps", {"resolved_at": "now()"}, {}),
    ("revision_gap_one_per_event", "revision_gaps", {"waiting_revision": "9"}, {}),
    ("projection_pointer_epoch_from_1", "projection_active_pointers", {"projection_name": "'x'", "epoch": "0"}, {}),
    ("projection_active_pointers_version", "projection_active_pointers", {"projection_name": "'x'"}, {}),
    ("projection_build_counts_events", "projection_build_runs", {"writer": "99", "applied_events": "0"}, {}),
    ("projection_build_runs_version", "projection_build_runs", {"projection_version": "'none'"}, {}),
    ("operation_reservation_state_closed", "operation_summaries", {"reservation_state": "'invented'", **NOTHING}, {}),
    ("operation_reservation_only_when_linked", "operation_summaries", {"currency": "NULL::text"}, {}),
    ("operation_reservation_only_when_linked", "operation_summaries", {"reservation_state": "'mismatched'"}, {}),
    (
        "operation_manifest_algorithm",
        "operation_summaries",
        {"run_admission_manifest_digest_algorithm_version": "'md5'"},
        {},
    ),
    ("operation_one_summary", "operation_summaries", {"run_id": "'x'"}, {}),
    ("operation_one_per_run", "operation_summaries", {"operation_id": "'x'"}, {}),
    ("timeline_entries_pkey", "timeline_entries", {"event_type": "'other@1'"}, {}),
    ("unlinked_born_undecided", "pending_unlinked_reservations", {"state": "'linked'"}, {}),
    ("unlinked_state_closed", "pending_unlinked_reservations", {"state": "'invented'"}, {}),
    ("unlinked_state_closed", "pending_unlinked_reservations", {"state": "'mismatched'"}, {}),
    (
        "unlinked_state_closed",
        "pending_unlinked_reservations",
        {"state": "'mismatched'", "run_event_id": "event_id", "decided_at": "now()", "disagreements": "'No Code'"},
        {},
    ),
    ("unlinked_digest", "pending_unlinked_reservations", {"event_envelope_sha256": "repeat('a', 64)"}, {}),
    ("unlinked_one_per_event", "pending_unlinked_reservations", {"run_id": "'x'"}, {}),
    ("identifier_kind_closed", "exact_identifiers", {"kind": "'tenant'"}, {}),
    ("exact_identifiers_pkey", "exact_identifiers", {"operation_id": "'x'"}, {}),
]

CHANGES: list[tuple[str, str]] = [
    ("projection_aggregate_forward", "UPDATE projection_aggregates SET applied_revision = applied_revision - 1"),
    ("revision_gap_state_closed", "UPDATE revision_gaps SET state = 'ignored', resolved_at = now()"),
    ("revision_gap_state_closed", "UPDATE revision_gaps SET state = 'resolved'"),
    ("revision_gap_forward", "UPDATE revision_gaps SET missing_from = missing_from - 1"),
    ("revision_gap_forward", "UPDATE revision_gaps SET waiting_revision = 9"),
    ("revision_gap_forward", "UPDATE revision_gaps SET aggregate_id = 'other'"),
    ("revision_gap_forward", "UPDATE revision_gaps SET detected_at = now() - interval '1 day'"),
    ("projection_pointer_next_epoch", "UPDATE projection_active_pointers SET activated_at = now()"),
    ("projection_pointer_next_epoch", "UPDATE projection_active_pointers SET epoch = epoch + 2"),
    ("projection_active_pointers_version", "UPDATE projection_active_pointers SET projection_version = '9', epoch = 2"),
    ("projection_build_only_grows", "UPDATE projection_build_runs SET applied_events = 0"),
    ("projection_build_only_grows", "UPDATE projection_build_runs SET last_applied_at = now()"),
    (
        "operation_summary_frozen",
        "UPDATE operation_summaries SET tenant_id = 'x', reservation_state = 'mismatched'"
        " WHERE reservation_state = 'source_delayed'",
    ),
    (
        "operation_summary_frozen",
        "UPDATE operation_summaries SET run_admission_manifest_digest = 'x', reservation_state = 'mismatched'"
        " WHERE reservation_state = 'source_delayed'",
    ),
    ("operation_reservation_forward", "UPDATE operation_summaries SET hold_amount_picos = 1"),
    (
        "operation_reservation_forward",
        "UPDATE operation_summaries SET reservation_state = 'source_delayed', reservation_event_id = NULL,"
        " currency = NULL, hold_amount_picos = NULL, reserved_at = NULL",
    ),
    (
        "unlinked_decided_once",
        "UPDATE pending_unlinked_reservations SET state = 'pending', run_event_id = NULL, disagreements = NULL,"
        " decided_at = NULL WHERE state = 'mismatched'",
    ),
    (
        "unlinked_decided_once",
        "UPDATE pending_unlinked_reservations SET disagreements = 'x' WHERE state = 'mismatched'",
    ),
    (
        "unlinked_decided_once",
        "UPDATE pending_unlinked_reservations SET run_id = 'x', state = 'linked', run_event_id = event_id,"
        " decided_at = now() WHERE state = 'pending'",
    ),
]


@pytest.fixture
def filled(database: None) -> None:
    fill_every_table()
    assert all(one(f"SELECT count(*) > 0 FROM {table}") for table in TABLES)


WHERE = {
    "operation_summaries": "reservation_state = 'linked'",
    "pending_unlinked_reservations": "state = 'pending'",
}


@pytest.mark.spec("O21", "O26", "O29")
def test_no_forged_row_gets_in(filled: None) -> None:
    for guard, table, columns, then in FORGED_ROWS:
        statement = copy_row(table, where=WHERE.get(table, "true"), then=then, **columns)
        state, name = refusal(statement, alias=OWNER)
        assert name == guard, (guard, name, statement)
        assert state in {GUARDED, CHECKED, UNIQUE, "23503"}


@pytest.mark.spec("O21", "O26", "O29")
def test_no_state_goes_back_and_no_fact_is_rewritten(filled: None) -> None:
    for guard, statement in CHANGES:
        state, name = refusal(statement, alias=SCHEMA)
        assert name == guard, (guard, name, statement)
        assert state in {GUARDED, CHECKED, "23503"}


@pytest.mark.spec("O21", "O26")
def test_every_constraint_and_guard_is_tried_here(filled: None) -> None:
    declared = {constraint.name for model in MODELS for constraint in model._meta.constraints}
    declared |= {trigger.name for model in MODELS for trigger in model._meta.triggers}  # type: ignore[attr-defined]  # pgtrigger adds it to Meta
    whole_table = {name for name in declared if name.endswith(("_kept", "_delete", "_truncate"))}
    tried = {guard for guard, *_ in FORGED_ROWS} | {guard for guard, _ in CHANGES}
    assert declared - whole_table <= tried


TRICKS: tuple[tuple[str, ...], ...] = (
    (),
    ("SET LOCAL pgtrigger.ignore = 'projector:all,timelines:all,all'",),
    ("SET LOCAL session_replication_role = replica",),
    (f"SET LOCAL ROLE {CORE.role_name(Role.SCHEMA)}",),
    ("SET LOCAL ROLE postgres",),
    ("SET LOCAL search_path = pg_temp, public",),
)


@pytest.mark.spec("O26")
@pytest.mark.trap("D30")
@pytest.mark.parametrize("role", CORE.roles)
def test_no_login_role_deletes_truncates_or_rewrites(filled: None, role: Role) -> None:
    alias = CORE.alias_of(role)
    update_of = {
        model._meta.db_table: next(
            field.column
            for field in model._meta.local_concrete_fields
            if field.column not in getattr(model, "owner_may_update", ())
        )
        for model in MODELS
    }
    for table in TABLES:
        column = update_of[table]
        for statement in (
            f"DELETE FROM {table}",
            f"TRUNCATE {table} CASCADE",
            f"UPDATE {table} SET {column} = {column}",
        ):
            if statement.startswith("UPDATE") and role is Role.SCHEMA and table not in _APPEND_ONLY:
                continue
            for before in TRICKS:
                state, name = refusal(statement, alias=alias, before=before)
                assert state in {GUARDED, DENIED}, (statement, before, state, name)
                if role is Role.SCHEMA and not before:
                    assert state == GUARDED, (statement, state)


_APPEND_ONLY = {
    RECEIPTS,
    SOURCES,
    "projection_versions",
    "timeline_entries",
    "exact_identifiers",
}
"""Elsewhere the schema role may write a value over itself; the other roles may not even do that."""


@pytest.mark.spec("O26")
@pytest.mark.trap("D30")
@pytest.mark.parametrize("role", [role for role in CORE.roles if role not in {Role.OWNER, Role.SCHEMA}])
def test_only_the_owner_writes_the_projection(filled: None, role: Role) -> None:
    for table in TABLES:
        state, _ = refusal(f"INSERT INTO {table} SELECT * FROM {table}", alias=CORE.alias_of(role))
        assert state in {DENIED, "428C9"}
        state, _ = refusal(f"COPY {table} FROM STDIN", alias=CORE.alias_of(role))
        assert state == DENIED


@pytest.mark.spec("O26")
@pytest.mark.trap("D23")
def test_the_projection_lives_in_the_database_of_core_only(database: None) -> None:
    for owner in ("billing", "execution", "gateway", "metering", "attachments", "telemetry"):
        found = rows("SELECT tablename FROM pg_tables WHERE tablename = ANY(%s)", TABLES, alias=f"{owner}.read")
        assert found == []
        found = rows(
            "SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
            " WHERE n.nspname = 'public' AND p.proname LIKE ANY(%s)",
            ["pgtrigger_projection%", "pgtrigger_operations%", "pgtrigger_unlinked%", "pgtrigger_revision_gap%"],
            alias=f"{owner}.read",
        )
        assert found == []


@pytest.mark.spec("O8")
def test_the_first_version_is_registered_and_active(database: None) -> None:
    assert rows("SELECT projection_name, projection_version FROM projection_versions") == [("operations", "1")]
    assert rows("SELECT projection_name, projection_version, epoch FROM projection_active_pointers") == [
        ("operations", "1", 1)
    ]
