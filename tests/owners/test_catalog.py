"""Each owner's database holds exactly what its models declare: tables, triggers, functions, grants (D23)."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import Model

from config.databases import address_of
from config.owners import OWNERS, Owner, Role, owner_named
from config.provision import models_of
from tests.owners.catalog import Snapshot, names, snapshot, snapshot_of

OWNER_IDS = [owner.name for owner in OWNERS]
DJANGO_LABELS = {"auth", "contenttypes", "sessions", "admin"}
SESSION_READS = {
    "auth_user", "django_session", "django_content_type", "auth_permission", "auth_group", "auth_user_groups",
    "auth_group_permissions", "auth_user_user_permissions", "django_admin_log",
}  # fmt: skip
TABLES = "c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
"""A partition is reached through its table, whose grants and guards count; `tests/otlp` proves them for partitions."""
Grants = set[tuple[str, str, str]]
RunDjango = Callable[..., subprocess.CompletedProcess[str]]


def sql_of(owner: Owner) -> str:
    """The text of every SQL file of the apps that live in the owner's database."""
    files = [path for label in owner.app_labels for path in Path(apps.get_app_config(label).path).glob("sql/*.sql")]
    return "\n".join(path.read_text() for path in files)


def declared_triggers(owner: Owner) -> set[tuple[str, str]]:
    """(table, trigger) from the models, and from the SQL files."""
    declared = {
        (model._meta.db_table, trigger.get_pgid(model))
        for model in models_of(owner)
        for trigger in getattr(model._meta, "triggers", [])
    }
    written = re.findall(
        r"CREATE\s+(?:OR REPLACE\s+)?(?:CONSTRAINT\s+)?TRIGGER\s+(\w+)[^;]*?\sON\s+(?:public\.)?(\w+)", sql_of(owner)
    )
    return declared | {(table, trigger) for trigger, table in written}


@pytest.mark.trap("D23")
@pytest.mark.parametrize("owner", OWNERS, ids=OWNER_IDS)
def test_exactly_the_declared_tables_triggers_and_functions_are_there(owner: Owner, database: None) -> None:
    tables = names(owner, f"SELECT relname FROM pg_class c WHERE {TABLES}")
    expected = {(model._meta.db_table,) for model in models_of(owner)}
    assert tables == expected | ({("django_migrations",)} if expected else set())
    triggers = names(
        owner,
        "SELECT relname, tgname FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid"
        " WHERE NOT tgisinternal AND NOT relispartition AND relnamespace = 'public'::regnamespace",
    )
    assert triggers == declared_triggers(owner)
    functions = {
        name for (name,) in names(owner, "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace")
    }
    written = set(re.findall(r"CREATE\s+(?:OR REPLACE\s+)?FUNCTION\s+(?:public\.)?(\w+)", sql_of(owner)))
    own = {trigger.get_pgid(model) for model in models_of(owner) for trigger in getattr(model._meta, "triggers", [])}
    assert functions == own | written | {"session_ages"}
    assert ("outbox_publish" in functions) is owner.produces


@pytest.mark.parametrize("owner", OWNERS, ids=OWNER_IDS)
def test_every_trigger_is_on_and_none_may_be_ignored(owner: Owner, database: None) -> None:
    switched_off = names(owner, "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O'")
    ignorable = names(owner, "SELECT proname FROM pg_proc WHERE prosrc LIKE '%pgtrigger.ignore%'")
    assert (switched_off, ignorable) == (set(), set())
    no_fixed_path = names(
        owner,
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        " AND (prosecdef OR prorettype = 'trigger'::regtype)"
        " AND NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c ~ '^search_path=.*pg_temp\"?$')",
    )
    assert no_fixed_path == set(), "a guard without its own search path trusts the session's, and its temporary tables"


def expected_table_grants(owner: Owner) -> Grants:
    """(role, table, privilege) on whole tables, from the models' own words."""
    grants: Grants = set()
    for model in models_of(owner):
        table = model._meta.db_table
        grants.add((owner.role_name(Role.READ), "django_migrations", "SELECT"))
        grants.add((owner.role_name(Role.READ), table, "SELECT"))
        grants |= {(owner.role_name(Role.OWNER), table, privilege) for privilege in _owner_privileges(model)}
        for role in {Role.DISPATCH, Role.JOURNAL} & set(owner.roles):
            may = {"SELECT": f"{role}_may_select", "INSERT": f"{role}_may_insert"}
            grants |= {
                (owner.role_name(role), table, privilege)
                for privilege, attribute in may.items()
                if getattr(model, attribute, False)
            }
    if owner.has_sessions:
        session = owner.role_name(Role.SESSION)
        grants |= {(session, table, "SELECT") for table in SESSION_READS}
        grants |= {(session, "django_session", privilege) for privilege in ("INSERT", "UPDATE", "DELETE")}
    return grants


def _owner_privileges(model: type[Model]) -> set[str]:
    if model._meta.app_label in DJANGO_LABELS:
        return {"SELECT", "INSERT", "UPDATE", "DELETE"}
    privileges = {"SELECT"}
    if getattr(model, "owner_may_insert", True):
        privileges.add("INSERT")
    if getattr(model, "owner_may_delete", False):
        privileges.add("DELETE")
    return privileges


def expected_column_grants(owner: Owner) -> Grants:
    """(role, table.column, privilege) beyond the whole-table grants."""
    grants: Grants = set()
    for model in models_of(owner):
        table = model._meta.db_table
        for role in (Role.OWNER, Role.DISPATCH, Role.JOURNAL):
            if role in owner.roles:
                columns = getattr(model, f"{role}_may_update", ())
                grants |= {(owner.role_name(role), f"{table}.{column}", "UPDATE") for column in columns}
    if owner.has_sessions:
        grants.add((owner.role_name(Role.SESSION), "auth_user.last_login", "UPDATE"))
    return grants


ROLES = "(SELECT rolname FROM pg_roles WHERE NOT rolsuper AND rolname !~ '^pg_') r"
TABLE_GRANTS = f"""
SELECT r.rolname, c.relname, p.privilege
  FROM {ROLES} CROSS JOIN pg_class c
 CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) p (privilege)
 WHERE {TABLES} AND r.rolname <> pg_get_userbyid(c.relowner)
   AND has_table_privilege(r.rolname, c.oid, p.privilege)
"""
COLUMN_GRANTS = f"""
SELECT r.rolname, c.relname || '.' || a.attname, p.privilege
  FROM {ROLES} CROSS JOIN pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
 CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) p (privilege)
 WHERE {TABLES} AND r.rolname <> pg_get_userbyid(c.relowner)
   AND has_column_privilege(r.rolname, c.oid, a.attnum, p.privilege)
   AND NOT has_table_privilege(r.rolname, c.oid, p.privilege)
"""
FUNCTION_GRANTS = f"""
SELECT r.rolname, f.proname, 'EXECUTE'
  FROM {ROLES} CROSS JOIN pg_proc f
 WHERE f.pronamespace = 'public'::regnamespace AND r.rolname <> pg_get_userbyid(f.proowner)
   AND has_function_privilege(r.rolname, f.oid, 'EXECUTE')
"""
DATABASE_GRANTS = f"""
SELECT r.rolname, 'database', p.privilege
  FROM {ROLES} CROSS JOIN unnest(ARRAY['CONNECT', 'CREATE', 'TEMP']) p (privilege)
 WHERE has_database_privilege(r.rolname, current_database(), p.privilege)
UNION
SELECT r.rolname, 'schema', p.privilege
  FROM {ROLES} CROSS JOIN unnest(ARRAY['USAGE', 'CREATE']) p (privilege)
 WHERE has_schema_privilege(r.rolname, 'public', p.privilege)
"""


@pytest.mark.trap("D23", "D30")
@pytest.mark.parametrize("owner", OWNERS, ids=OWNER_IDS)
def test_every_role_has_exactly_the_grants_that_the_models_declare(owner: Owner, database: None) -> None:
    assert names(owner, TABLE_GRANTS) == expected_table_grants(owner)
    assert names(owner, COLUMN_GRANTS) == expected_column_grants(owner)
    functions = {(owner.role_name(Role.READ), "session_ages", "EXECUTE")}
    for model in models_of(owner):
        declared = getattr(model, "owner_may_execute", ())
        functions |= {(owner.role_name(Role.OWNER), name.partition("(")[0], "EXECUTE") for name in declared}
    if owner.produces:
        functions.add((owner.role_name(Role.DISPATCH), "outbox_publish", "EXECUTE"))
        readers = [role for role in owner.roles if role is not Role.SCHEMA]
        functions |= {(owner.role_name(role), "event_payload", "EXECUTE") for role in readers}
    assert names(owner, FUNCTION_GRANTS) == functions
    roles = [owner.role_name(role) for role in owner.roles]
    assert names(owner, DATABASE_GRANTS) == {
        *((role, "database", "CONNECT") for role in roles),
        *((role, "schema", "USAGE") for role in roles),
        (owner.role_name(Role.SCHEMA), "schema", "CREATE"),
        *([(owner.role_name(Role.OWNER), "database", "TEMP")] if owner.stages_rows else []),
    }


@pytest.mark.trap("D30")
def test_no_login_role_has_an_attribute_or_a_membership_that_opens_a_wall(database: None) -> None:
    roles = names(
        OWNERS[0],
        "SELECT rolname, rolcanlogin, rolsuper OR rolcreaterole OR rolcreatedb OR rolinherit OR rolreplication OR"
        " rolbypassrls, (SELECT count(*) FROM pg_auth_members m WHERE m.member = r.oid OR m.roleid = r.oid)"
        " FROM pg_roles r WHERE NOT rolsuper AND rolname !~ '^pg_'",
    )
    assert roles == {(owner.role_name(role), True, False, 0) for owner in OWNERS for role in owner.roles}


@pytest.mark.parametrize("owner", OWNERS, ids=OWNER_IDS)
def test_the_schema_role_owns_every_table_and_function_but_the_administrators_one(owner: Owner, database: None) -> None:
    owners = names(
        owner,
        "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " UNION SELECT pg_get_userbyid(proowner) FROM pg_proc"
        " WHERE pronamespace = 'public'::regnamespace AND proname <> 'session_ages'",
    )
    assert owners <= {(owner.role_name(Role.SCHEMA),)}


@pytest.mark.trap("D23")
def test_migrating_again_changes_nothing_anywhere(database: None, run_django: RunDjango) -> None:
    before = {owner.name: snapshot_of(owner) for owner in OWNERS}
    done = run_django("migrate_owners")
    assert done.returncode == 0, done.stderr
    after = {owner.name: snapshot_of(owner) for owner in OWNERS}
    assert {name: after[name] ^ before[name] for name in before} == {name: frozenset() for name in before}


@pytest.fixture
def scratch() -> Iterator[Callable[[Owner], Snapshot | None]]:
    """Databases under a prefix of their own: answers an owner's snapshot there, None if it does not exist."""

    def connect(database: str) -> psycopg.Connection[Any]:
        address = address_of(OWNERS[0])
        return psycopg.connect(
            host=address.host, port=address.port, user=address.user, password=address.password, dbname=database,
            autocommit=True,
        )  # fmt: skip

    def look(owner: Owner) -> Snapshot | None:
        try:
            connection = connect(f"test_scratch_{owner.name}")
        except psycopg.OperationalError:
            return None
        with connection, connection.cursor() as cursor:
            return snapshot(cursor)

    yield look
    with connect("postgres") as server:
        for owner in OWNERS:
            server.execute(f"DROP DATABASE IF EXISTS test_scratch_{owner.name} WITH (FORCE)")


@pytest.mark.trap("D23")
def test_two_owner_databases_migrated_in_turn_do_not_touch_each_other(
    database: None, run_django: RunDjango, scratch: Callable[[Owner], Snapshot | None]
) -> None:
    if not settings.DATABASES["default"]["NAME"].startswith("test_"):
        pytest.skip("needs the embedded server: the tests name the databases of a real one")
    env = {"DATABASE_NAME_PREFIX": "test_scratch_"}
    gateway, metering = owner_named("gateway"), owner_named("metering")
    assert run_django("migrate_owners", "gateway", env=env).returncode == 0
    first = scratch(gateway)
    assert first is not None
    assert scratch(metering) is None
    assert run_django("migrate_owners", "metering", env=env).returncode == 0
    assert scratch(gateway) == first
    made = scratch(metering)
    assert made is not None
    assert without_times(made) == without_times(snapshot_of(metering))


def without_times(found: Snapshot) -> set[tuple[Any, ...]]:
    """What does not depend on when, and under which name, the database was made."""
    return {row for row in found if row[0] not in {"delivery set", "database"}}
