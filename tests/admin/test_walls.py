"""The connections of the web process can look and nothing else; the database itself refuses, not our code."""

import psycopg
import pytest
from django.db import DatabaseError, connections, transaction
from django.test import Client

from config.owners import OWNERS, Role, owner_named
from tests.admin.crawl import crawl, watching
from tests.admin.world import World

CORE = owner_named("core")
SESSION_ALIAS = CORE.alias_of(Role.SESSION)
WEB = {*(owner.read_alias for owner in OWNERS), SESSION_ALIAS}
"""Every alias that the web process uses."""
REFUSED = {"42501", "25006", "OB100", "42704", "55P02", "0A000", "42939"}
"""SQLSTATEs of a refusal: no privilege, read-only, guarded, and settings that a role may not change."""


def tables(alias: str) -> dict[str, list[str]]:
    """Every table of the database behind `alias`, with its columns."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') GROUP BY 1"
        )
        return dict(cursor.fetchall())


def refusal(alias: str, statement: str) -> str | None:
    """The SQLSTATE with which the database refuses a statement; None if it ran. Nothing is kept."""
    try:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            cursor.execute(statement)
            transaction.set_rollback(True, using=alias)
    except DatabaseError as error:
        cause = error.__cause__
        assert isinstance(cause, psycopg.Error)
        return cause.sqlstate
    return None


ALLOWED = {
    ("django_session", "insert"),
    ("django_session", "delete"),
    *(("django_session", f"update {column}") for column in ("session_key", "session_data", "expire_date")),
    ("auth_user", "update last_login"),
}
"""All that the session role may write."""


@pytest.mark.spec("O31")
@pytest.mark.trap("D30")
@pytest.mark.parametrize("alias", sorted(WEB))
def test_the_database_refuses_every_write_on_every_table_to_the_connections_of_the_web(
    database: None, alias: str
) -> None:
    for table, columns in tables(alias).items():
        statements = {
            "insert": f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 0',
            "delete": f'DELETE FROM "{table}" WHERE false',
            "truncate": f'TRUNCATE "{table}" CASCADE',
            "lock": f'LOCK TABLE "{table}" IN EXCLUSIVE MODE',
            "trigger off": f'ALTER TABLE "{table}" DISABLE TRIGGER ALL',
            "drop": f'DROP TABLE "{table}" CASCADE',
            **{f"update {name}": f'UPDATE "{table}" SET "{name}" = "{name}" WHERE false' for name in columns},
        }
        if any("generated" in name for name in columns):
            continue
        for what, statement in statements.items():
            if what == "insert":
                names = ", ".join(f'"{name}"' for name in columns)
                statement = f'INSERT INTO "{table}" ({names}) SELECT {names} FROM "{table}" LIMIT 0'  # noqa: PLW2901  (generated columns take no value)
            if alias == SESSION_ALIAS and (table, what) in ALLOWED:
                assert refusal(alias, statement) is None, f"{alias}: {what} {table} should be allowed"
            elif alias == SESSION_ALIAS and table == "django_session" and what == "lock":
                continue
            else:
                assert refusal(alias, statement) in REFUSED, f"{alias}: {what} {table}"


@pytest.mark.trap("D30")
@pytest.mark.parametrize("alias", sorted(WEB))
def test_no_connection_of_the_web_can_become_another_role_or_lift_a_guard(database: None, alias: str) -> None:
    owner = next(owner for owner in OWNERS if alias in {owner.read_alias, owner.alias_of(Role.SESSION)})
    for role in (Role.OWNER, Role.SCHEMA, Role.DISPATCH):
        assert refusal(alias, f'SET ROLE "{owner.role_name(role)}"') in {"42501", "22023"}
    assert refusal(alias, "SET session_replication_role = replica") == "42501"
    assert refusal(alias, "CREATE TABLE mine (a int)") == "42501"
    assert refusal(alias, "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'") == "42501"
    assert refusal(alias, "COPY (SELECT 1) TO PROGRAM 'true'") == "42501"
    if owner.produces:
        assert refusal(alias, "SELECT * FROM outbox_publish(ARRAY[]::uuid[])") == "42501"


@pytest.mark.spec("O31")
def test_every_page_uses_the_read_roles_and_the_session_role_only(looker: Client, world: World) -> None:
    with watching() as ran:
        for _ in crawl(looker):
            pass
    assert {one.alias for one in ran} <= WEB
    writing = [one.sql for one in ran if one.sql.lstrip().partition(" ")[0].upper() in {"INSERT", "UPDATE", "DELETE"}]
    assert writing == []
    assert {one.alias for one in ran} >= {owner.read_alias for owner in OWNERS if owner.produces}
