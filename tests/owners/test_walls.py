"""What each LOGIN role of each owner tries in vain, with any session setting (D30)."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from django.db import connections, transaction

from config.owners import OWNERS, Owner, Role, owner_named, owner_roles, producers
from config.provision import models_of
from outbox.append import append_many
from outbox.guards import REFUSED
from tests.outbox.make import admission

NO_PRIVILEGE = "42501"
EVERY_ROLE = list(owner_roles())
ROLE_IDS = [owner.role_name(role) for owner, role in EVERY_ROLE]
OTHER_ROLES = [(owner, role) for owner, role in EVERY_ROLE if role is not Role.SCHEMA]
SETTINGS = (
    "SELECT 1",
    "SET pgtrigger.ignore = '{all}'",
    "SELECT set_config('pgtrigger.ignore', '{' || string_agg(tgrelid::regclass || ':' || tgname, ',') || '}', false)"
    " FROM pg_trigger WHERE NOT tgisinternal",
    "SET search_path = pg_temp, pg_catalog",
    "SET row_security = off",
    "SET constraint_exclusion = off",
    "SET check_function_bodies = off",
    "SET default_transaction_deferrable = on",
    "SET transaction_timeout = 0",
    "SET plpgsql.variable_conflict = 'use_variable'",
)
"""Settings that any role may make; the guards hold under each of them."""


@contextmanager
def session(owner: Owner, role: Role) -> Iterator[psycopg.Connection[Any]]:
    """A session of the role that nobody used before, without the statement cache."""
    wrapper = connections[owner.alias_of(role)]
    wrapper.close()
    wrapper.ensure_connection()
    try:
        yield wrapper.connection
    finally:
        wrapper.close()


def refusal(connection: psycopg.Connection[Any], statement: str) -> str | None:
    """SQLSTATE of the refusal, None if the statement went through. Leaves nothing behind."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.Error as error:
        return error.sqlstate
    return None


@pytest.fixture
def facts(database: None) -> str:
    """One admission in core's outbox; its run event's id."""
    with transaction.atomic(using="default"):
        return str(append_many(admission(), using="default")[0].event_id)


@pytest.mark.trap("D30")
@pytest.mark.parametrize(("owner", "role"), EVERY_ROLE, ids=ROLE_IDS)
def test_no_role_becomes_another_or_switches_replication_triggers_off(owner: Owner, role: Role, database: None) -> None:
    others = [other.role_name(kind) for other, kind in EVERY_ROLE if (other, kind) != (owner, role)]
    with session(owner, role) as connection:
        for name in [*others, "postgres", "pg_read_all_data", "pg_write_all_data", "pg_signal_backend"]:
            assert refusal(connection, f'SET ROLE "{name}"') == NO_PRIVILEGE, name
            assert refusal(connection, f'SET SESSION AUTHORIZATION "{name}"') == NO_PRIVILEGE, name
        for setting in ("session_replication_role = replica", "session_preload_libraries = 'x'"):
            assert refusal(connection, f"SET {setting}") == NO_PRIVILEGE
        assert refusal(connection, f'ALTER ROLE "{owner.role_name(role)}" SUPERUSER') == NO_PRIVILEGE
        assert refusal(connection, "SELECT pg_read_file('postgresql.conf')") == NO_PRIVILEGE
        assert refusal(connection, "COPY (SELECT 1) TO PROGRAM 'true'") == NO_PRIVILEGE


@pytest.mark.trap("D30")
@pytest.mark.parametrize(("owner", "role"), EVERY_ROLE, ids=ROLE_IDS)
def test_no_role_enters_another_owners_database(owner: Owner, role: Role, database: None) -> None:
    own = connections[owner.alias_of(role)].settings_dict
    for other in OWNERS:
        theirs = connections[other.alias].settings_dict
        if (theirs["HOST"], theirs["PORT"], theirs["NAME"]) == (own["HOST"], own["PORT"], own["NAME"]):
            continue
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(
                host=theirs["HOST"], port=theirs["PORT"], dbname=theirs["NAME"], user=own["USER"],
                password=own["PASSWORD"], connect_timeout=5,
            ).close()  # fmt: skip


@pytest.mark.trap("D30")
@pytest.mark.parametrize(("owner", "role"), OTHER_ROLES, ids=[owner.role_name(role) for owner, role in OTHER_ROLES])
def test_only_the_schema_role_makes_or_changes_anything_that_could_shadow_or_disarm(
    owner: Owner, role: Role, database: None
) -> None:
    # Who stages rows may make temporary tables; the guards of its database name their tables with their schema.
    stages = owner.stages_rows and role is Role.OWNER
    statements = [
        *([] if stages else ["CREATE TEMP TABLE shadow (id int)", "CREATE TEMP VIEW outbox_events AS SELECT 1"]),
        "CREATE SCHEMA shadow",
        "CREATE TABLE public.shadow (id int)",
        "CREATE FUNCTION public.shadow() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE OPERATOR public.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = uuid_eq)",
        "CREATE EXTENSION pg_stat_statements",
    ]
    trigger = "FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    tables = [model._meta.db_table for model in models_of(owner)]
    for table in tables:
        statements += [
            f"CREATE TRIGGER shadow BEFORE UPDATE ON {table} {trigger}",
            f"CREATE RULE shadow AS ON UPDATE TO {table} DO INSTEAD NOTHING",
            f"ALTER TABLE {table} DISABLE TRIGGER USER",
            f"ALTER TABLE {table} DISABLE TRIGGER ALL",
            f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
            f"ALTER TABLE {table} OWNER TO {owner.role_name(role)}",
            f"DROP TABLE {table} CASCADE",
        ]
    with session(owner, role) as connection:
        for statement in statements:
            assert refusal(connection, statement) == NO_PRIVILEGE, statement
        for table in tables:
            # PostgreSQL only warns when a role holds something on the table and nothing that it could grant.
            assert refusal(connection, f"GRANT ALL ON {table} TO PUBLIC") in {NO_PRIVILEGE, None}, table
            with connection.transaction(force_rollback=True), suppress(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"GRANT ALL ON {table} TO PUBLIC")
                row = connection.execute("SELECT has_table_privilege(current_user, %s, 'TRUNCATE')", [table]).fetchone()
                assert row == (False,), table


@pytest.mark.trap("D30")
@pytest.mark.parametrize(("owner", "role"), OTHER_ROLES, ids=[owner.role_name(role) for owner, role in OTHER_ROLES])
def test_no_role_empties_or_deletes_what_its_grants_do_not_name(owner: Owner, role: Role, database: None) -> None:
    with session(owner, role) as connection:
        for model in models_of(owner):
            table = model._meta.db_table
            assert refusal(connection, f"TRUNCATE {table} CASCADE") == NO_PRIVILEGE, table
            framework = model._meta.app_label in {"auth", "contenttypes", "sessions", "admin"}
            if framework or (role is Role.OWNER and getattr(model, "owner_may_delete", False)):
                continue
            assert refusal(connection, f"DELETE FROM {table}") == NO_PRIVILEGE, table


@pytest.mark.trap("D30")
@pytest.mark.spec("O3", "O18")
@pytest.mark.parametrize("role", [Role.OWNER, Role.DISPATCH, Role.READ, Role.SESSION, Role.SCHEMA], ids=str)
def test_under_every_setting_committed_facts_stay_as_they_are(role: Role, facts: str) -> None:
    where = f"event_id = '{facts}'"
    forbidden = {
        f"UPDATE public.outbox_events SET event_envelope = '{{}}' WHERE {where}": {NO_PRIVILEGE, REFUSED},
        f"UPDATE public.outbox_events SET tenant_id = 'other' WHERE {where}": {NO_PRIVILEGE, REFUSED},
        f"DELETE FROM public.outbox_events WHERE {where}": {NO_PRIVILEGE, REFUSED},
        f"DELETE FROM public.outbox_deliveries WHERE {where}": {NO_PRIVILEGE, REFUSED},
        "TRUNCATE public.outbox_deliveries CASCADE": {NO_PRIVILEGE, REFUSED},
        "TRUNCATE public.outbox_events CASCADE": {NO_PRIVILEGE, REFUSED},
        f"UPDATE public.outbox_deliveries SET status = 'acknowledged' WHERE {where}": {NO_PRIVILEGE, REFUSED},
        f"UPDATE public.outbox_deliveries SET consumer_name = 'me' WHERE {where}": {NO_PRIVILEGE, REFUSED},
        f"UPDATE public.outbox_deliveries SET lease_token = 9 WHERE {where}": {NO_PRIVILEGE, REFUSED},
        "UPDATE public.delivery_set_versions SET definition = '{}'": {NO_PRIVILEGE, REFUSED},
        "DELETE FROM public.delivery_set_members": {NO_PRIVILEGE, REFUSED},
        "TRUNCATE public.delivery_set_versions CASCADE": {NO_PRIVILEGE, REFUSED},
    }
    for setting in SETTINGS:
        with session(owner_named("core"), role) as connection:
            try:
                connection.execute(setting)
            except psycopg.Error:
                connection.rollback()  # a setting this server or role does not have is no way around either
            for statement, allowed in forbidden.items():
                assert refusal(connection, statement) in allowed, f"{setting}; {statement}"


@pytest.mark.trap("D30")
@pytest.mark.spec("O18")
@pytest.mark.parametrize("owner", producers(), ids=[owner.name for owner in producers()])
def test_published_at_is_written_by_its_function_only_and_the_function_by_the_dispatcher_only(
    owner: Owner, database: None
) -> None:
    for role in owner.roles:
        with session(owner, role) as connection:
            called = refusal(connection, "SELECT * FROM outbox_publish(ARRAY[gen_random_uuid()])")
            assert called == ("OB001" if role in {Role.DISPATCH, Role.SCHEMA} else NO_PRIVILEGE)
            if role is not Role.SCHEMA:
                assert refusal(connection, "UPDATE outbox_events SET published_at = now()") == NO_PRIVILEGE


@pytest.mark.trap("D30")
@pytest.mark.parametrize(("owner", "role"), OTHER_ROLES, ids=[owner.role_name(role) for owner, role in OTHER_ROLES])
def test_copy_reaches_no_table_that_insert_does_not(owner: Owner, role: Role, database: None) -> None:
    with session(owner, role) as connection:
        for model in models_of(owner):
            table = model._meta.db_table
            row = connection.execute("SELECT has_table_privilege(current_user, %s, 'INSERT')", [table]).fetchone()
            if row is None or row[0]:
                continue
            assert refusal(connection, f"COPY {table} FROM STDIN") == NO_PRIVILEGE, table


@pytest.mark.trap("D30")
@pytest.mark.parametrize("role", [Role.OWNER, Role.SCHEMA], ids=str)
def test_copy_meets_the_same_guards_as_insert(role: Role, facts: str) -> None:
    """A forged row is refused by digest, and a true copy of an event by its missing deliveries."""
    with session(owner_named("core"), role) as connection:
        columns = [
            name
            for (name,) in connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = 'outbox_events'::regclass AND attnum > 0"
                " AND attgenerated = ''"
            ).fetchall()
        ]
        row = connection.execute(
            f"SELECT {', '.join(columns)} FROM outbox_events WHERE event_id = %s", [facts]
        ).fetchone()
        assert row is not None
        forged = dict(zip(columns, row, strict=True)) | {"tenant_id": "other", "published_at": None}
        copying = f"COPY outbox_events ({', '.join(columns)}) FROM STDIN"
        with (
            pytest.raises(psycopg.Error) as refused,
            connection.transaction(),
            connection.cursor().copy(copying) as copy,
        ):
            copy.write_row([forged[column] for column in columns])
        assert refused.value.sqlstate == REFUSED
        assert refused.value.diag.constraint_name == "outbox_event_columns"


def test_the_schema_role_can_disarm_a_guard_by_ddl_and_nothing_else_does(facts: str) -> None:
    """The documented exception: whoever owns the table can change it by DDL. No running process has that login."""
    with session(owner_named("core"), Role.SCHEMA) as connection:
        assert refusal(connection, "ALTER TABLE outbox_events DISABLE TRIGGER USER") is None
        assert refusal(connection, "DELETE FROM outbox_events") == REFUSED
