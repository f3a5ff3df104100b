"""Break what the guards protect, as nobody but the administrator of the server can.

Every login role of the system is refused these changes, which other tests prove. Here a superuser sets
`session_replication_role = replica`, which skips triggers and foreign keys, and drops a constraint where one stands in
the way.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from config.databases import address_of
from config.owners import owner_named


@contextmanager
def administrator(owner: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection that may do anything in the owner's database."""
    address = address_of(owner_named(owner))
    with psycopg.connect(
        host=address.host, port=address.port, user=address.user, password=address.password, dbname=address.name,
        autocommit=True,
    ) as connection:  # fmt: skip
        yield connection


def tamper(owner: str, *statements: str) -> int:
    """Execute statements without triggers and foreign keys; how many rows they changed."""
    with administrator(owner) as connection:
        connection.execute("SET session_replication_role = replica")
        return sum(max(0, connection.execute(statement).rowcount) for statement in statements)


@contextmanager
def undone(owner: str, statements: str) -> Iterator[None]:
    """Put every table that `statements` change back afterwards, row by row as it was."""
    tables = sorted(set(re.findall(r"(?:UPDATE|DELETE FROM|INSERT INTO) (\w+)", statements)))
    with administrator(owner) as connection:
        columns = {table: _written_columns(connection, table) for table in tables}
        for table in tables:
            connection.execute(f"CREATE TEMPORARY TABLE kept_{table} AS SELECT {columns[table]} FROM {table}")
        try:
            yield
        finally:
            connection.execute("SET session_replication_role = replica")
            for table in tables:
                connection.execute(f"DELETE FROM {table}")
                connection.execute(f"INSERT INTO {table} ({columns[table]}) OVERRIDING SYSTEM VALUE TABLE kept_{table}")


def _written_columns(connection: psycopg.Connection[tuple[Any, ...]], table: str) -> str:
    rows = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        " AND attgenerated = '' ORDER BY attnum",
        [table],
    ).fetchall()
    return ", ".join(name for (name,) in rows)


@contextmanager
def without_constraint(owner: str, table: str, name: str) -> Iterator[None]:
    """Drop a constraint, and bring it back when the rows satisfy it again."""
    with administrator(owner) as connection:
        found = connection.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [name]
        ).fetchone()
        assert found is not None, name
        connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    try:
        yield
    finally:
        with administrator(owner) as connection:
            connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {found[0]}")
