"""Databases, LOGIN roles and grants of every owner, made from the owner table; running it again changes nothing.

Creating databases and roles needs an administrator's login (the user in `DATABASE_URL_<OWNER>`); where an operator made
them already, that step is skipped and only grants are made, by the schema role that owns the tables. Nothing here uses
`SET ROLE`.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
from django.apps import apps
from django.conf import settings
from django.db import connections
from django.db.models import Model
from psycopg import sql

from config.databases import address_of, role_password
from config.migrate import labels_of
from config.owners import Owner, Role

PLANNER = {
    Role.DISPATCH: {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off"},
    Role.OWNER: {"enable_seqscan": "off", "jit": "off"},
    Role.JOURNAL: {"enable_seqscan": "off", "jit": "off"},
}
"""The dispatcher touches batches of rows by key, whatever the statistics of a queue say when they are taken; and guards
and foreign keys that a session planned while a table was empty must not scan it when it is full."""
IS_LOADED = """
SELECT %(name)s = ANY (string_to_array(replace(current_setting('shared_preload_libraries'), ' ', ''), ','))
   AND EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = %(name)s)
"""
SESSION_AGES = (Path(__file__).resolve().parent / "sql" / "session_ages.sql").read_bytes()
"""Only an administrator's function can tell how old other roles' transactions are; the read role may call it."""


def provision(owner: Owner) -> bool:
    """Create database, roles, passwords and timeouts. False, and nothing done, without an administrator's login."""
    address = address_of(owner)
    if not address.user:
        return False
    admin = {"host": address.host, "port": address.port, "user": address.user, "password": address.password}
    with psycopg.connect(**admin, dbname="postgres", autocommit=True, **address.options) as server:  # type: ignore[arg-type]  # psycopg takes libpq options as keywords
        server.execute("SELECT pg_advisory_lock(hashtext('backbone.provision'))")
        if not server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [address.name]).fetchone():
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(address.name)))
        for role in owner.roles:
            _create_role(server, owner, role, database=address.name)
    with psycopg.connect(**admin, dbname=address.name, autocommit=True, **address.options) as database:  # type: ignore[arg-type]  # as above
        for extension in owner.extensions:
            if database.execute(IS_LOADED, {"name": extension}).fetchone() == (True,):
                for statement in _extension(owner, extension):
                    database.execute(statement)
        for statement in _database_grants(owner, address.name):
            database.execute(statement)
        database.execute(SESSION_AGES)
        reader = sql.Identifier(owner.role_name(Role.READ))
        database.execute(sql.SQL("GRANT EXECUTE ON FUNCTION public.session_ages() TO {}").format(reader))
    return True


def _create_role(server: psycopg.Connection, owner: Owner, role: Role, *, database: str) -> None:
    name = sql.Identifier(owner.role_name(role))
    known = server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [owner.role_name(role)]).fetchone()
    server.execute(
        sql.SQL(
            "{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION NOBYPASSRLS PASSWORD {}"
        ).format(sql.SQL("ALTER" if known else "CREATE"), name, sql.Literal(role_password(owner, role)))
    )
    for setting, value in _session_settings(role).items():
        server.execute(
            sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
                name, sql.Identifier(database), sql.Identifier(setting), sql.Literal(value)
            )
        )


def _session_settings(role: Role) -> dict[str, str]:
    if role is Role.SCHEMA:
        return {}
    return {
        "statement_timeout": f"{settings.DATABASE_STATEMENT_TIMEOUT[role.value] * 1000:.0f}ms",
        "lock_timeout": f"{settings.DATABASE_LOCK_TIMEOUT * 1000:.0f}ms",
        "idle_in_transaction_session_timeout": f"{settings.DATABASE_IDLE_IN_TRANSACTION_TIMEOUT * 1000:.0f}ms",
    } | PLANNER.get(role, {})


def _database_grants(owner: Owner, name: str) -> Iterator[sql.Composed]:
    database = sql.Identifier(name)
    schema_role = sql.Identifier(owner.role_name(Role.SCHEMA))
    yield sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database)
    yield sql.SQL("REVOKE ALL ON SCHEMA public FROM PUBLIC").format()
    for role in owner.roles:
        name_of_role = sql.Identifier(owner.role_name(role))
        yield sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, name_of_role)
        yield sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(name_of_role)
    if owner.stages_rows:
        loader = sql.Identifier(owner.role_name(Role.OWNER))
        yield sql.SQL("GRANT TEMPORARY ON DATABASE {} TO {}").format(database, loader)
    yield sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(schema_role)
    yield sql.SQL("ALTER DEFAULT PRIVILEGES FOR ROLE {} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC").format(schema_role)


def _extension(owner: Owner, name: str) -> Iterator[sql.Composed]:
    """In a schema of its own name, so that `public` holds what the migrations made and nothing else."""
    own, schema_role = sql.Identifier(name), sql.Identifier(owner.role_name(Role.SCHEMA))
    yield sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(own)
    yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(own, schema_role)
    yield sql.SQL("CREATE EXTENSION IF NOT EXISTS {} WITH SCHEMA {}").format(own, own)


def grant_tables(owner: Owner) -> None:
    """Grant every role exactly what its models declare, and revoke the rest. Runs as the schema role, after migrations.

    A model may declare, beside the default of SELECT and INSERT for the owner role: `owner_may_insert`,
    `owner_may_update` (columns), `owner_may_delete`, `owner_may_read` (views over it), `owner_may_execute` (functions
    that guard it), `dispatch_may_select`, `dispatch_may_insert`, `dispatch_may_update` (columns), and the same three of
    `journal_may_…`.
    """
    with connections[owner.schema_alias].cursor() as cursor:
        for statement in table_grants(owner):
            cursor.execute(statement)


def table_grants(owner: Owner) -> Iterator[str]:
    """The statements of `grant_tables`, in order."""
    roles = {role: f'"{owner.role_name(role)}"' for role in owner.roles}
    everyone = ", ".join(role for kind, role in roles.items() if kind is not Role.SCHEMA)
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {everyone}"
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {roles[Role.READ]}"
    yield f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {roles[Role.OWNER]}"
    for model in models_of(owner):
        table = f'"{model._meta.db_table}"'
        yield from _owner_grants(model, table, roles[Role.OWNER])
        if Role.DISPATCH in roles:
            yield from _narrow_grants(model, table, roles[Role.DISPATCH], "dispatch")
        if Role.JOURNAL in roles:
            yield from _narrow_grants(model, table, roles[Role.JOURNAL], "journal")
    if Role.DISPATCH in roles:
        yield f"GRANT EXECUTE ON FUNCTION outbox_publish(uuid[]) TO {roles[Role.DISPATCH]}"
        yield f"GRANT EXECUTE ON FUNCTION event_payload(outbox_events) TO {everyone}"
    if Role.SESSION in roles:
        session = roles[Role.SESSION]
        yield f"GRANT SELECT ON auth_user, django_session, django_content_type, auth_permission TO {session}"
        yield f"GRANT SELECT ON auth_group, auth_user_groups, auth_group_permissions TO {session}"
        yield f"GRANT SELECT ON auth_user_user_permissions, django_admin_log TO {session}"
        yield f"GRANT UPDATE (last_login) ON auth_user TO {session}"
        yield f"GRANT INSERT, UPDATE, DELETE ON django_session TO {session}"


def _owner_grants(model: type[Model], table: str, role: str) -> Iterator[str]:
    if model._meta.app_label in {"auth", "contenttypes", "sessions", "admin"}:
        yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}"
        return
    yield f"GRANT SELECT ON {table} TO {role}"
    if getattr(model, "owner_may_insert", True):
        yield f"GRANT INSERT ON {table} TO {role}"
    columns: tuple[str, ...] = getattr(model, "owner_may_update", ())
    if columns:
        yield f"GRANT UPDATE ({', '.join(columns)}) ON {table} TO {role}"
    if getattr(model, "owner_may_delete", False):
        yield f"GRANT DELETE ON {table} TO {role}"
    views: tuple[str, ...] = getattr(model, "owner_may_read", ())
    yield from (f"GRANT SELECT ON {view} TO {role}" for view in views)
    functions: tuple[str, ...] = getattr(model, "owner_may_execute", ())
    yield from (f"GRANT EXECUTE ON FUNCTION {function} TO {role}" for function in functions)


def _narrow_grants(model: type[Model], table: str, role: str, word: str) -> Iterator[str]:
    if getattr(model, f"{word}_may_select", False):
        yield f"GRANT SELECT ON {table} TO {role}"
    if getattr(model, f"{word}_may_insert", False):
        yield f"GRANT INSERT ON {table} TO {role}"
    columns: tuple[str, ...] = getattr(model, f"{word}_may_update", ())
    if columns:
        yield f"GRANT UPDATE ({', '.join(columns)}) ON {table} TO {role}"


def models_of(owner: Owner) -> Iterator[type[Model]]:
    """Every model with a managed table in the owner's database, many-to-many tables included."""
    labels = labels_of(owner)
    for config in apps.get_app_configs():
        if config.label in labels:
            for model in config.get_models(include_auto_created=True):
                if model._meta.managed and not model._meta.proxy:
                    yield model
