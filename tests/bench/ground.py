"""The benchmark's own servers and scratch databases, apart from those of development and of the tests.

`start` must run before Django's settings are read. A scratch database is a byte copy of a template, so every round of
a comparison starts from the same pages, and a part may break guards in it. Child processes find theirs by its prefix.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from config.embedded import Embedded, Services, running_services, state_dir

EMPTY = "bench_empty_"
"""Prefix of the migrated, empty databases from which everything is copied."""


@contextmanager
def started() -> Iterator[Services]:
    """Servers under `$STATE_DIR/bench` for as long as the context lasts."""
    os.environ["STATE_DIR"] = str(state_dir() / "bench")
    os.environ["DATABASE_NAME_PREFIX"] = EMPTY
    os.environ["LOG_LEVEL"] = "ERROR"
    embedded = Embedded(state=state_dir())
    embedded.start()
    try:
        with administrator() as server:
            restart = server.execute("SHOW track_commit_timestamp").fetchone() == ("off",)
            if restart:
                server.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        if restart:
            embedded.stop()
        services = embedded.start() if restart else running()
        os.environ["REDIS_URL"] = services.redis_url
        yield services
    finally:
        embedded.stop()


def running() -> Services:
    """The servers of the benchmark."""
    services = running_services(state_dir())
    if services is None:
        raise RuntimeError("The servers of the benchmark do not run.")
    return services


def administrator(database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
    """An autocommit connection of the server's administrator."""
    services = running()
    return psycopg.connect(
        host=services.postgres_host,
        port=services.postgres_port,
        user=services.postgres_user,
        password=services.postgres_password,
        dbname=database,
        autocommit=True,
    )


def environment() -> dict[str, str]:
    """What child processes need to find the servers."""
    return dict(os.environ)


def make_empty() -> None:
    """Core's and billing's databases, new and migrated, under the prefix `EMPTY`."""
    from django.core.management import call_command
    from django.db import connections

    names = ("core", "billing")
    for name in names:
        drop(f"{EMPTY}{name}")
    call_command("migrate_owners", *names, verbosity=0)
    connections.close_all()


def copy(*, of: str, to: str, owner: str = "core") -> None:
    """Make the database `<to><owner>` a copy of `<of><owner>`, with the grants that copying leaves behind."""
    from config.owners import owner_named
    from config.provision import provision

    drop(f"{to}{owner}")
    with administrator() as server:
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                sql.Identifier(f"{to}{owner}"), sql.Identifier(f"{of}{owner}")
            )
        )
    before = os.environ["DATABASE_NAME_PREFIX"]
    os.environ["DATABASE_NAME_PREFIX"] = to
    try:
        provision(owner_named(owner))
    finally:
        os.environ["DATABASE_NAME_PREFIX"] = before


def drop(name: str) -> None:
    """Drop a database of the benchmark, whoever is connected."""
    assert name.startswith("bench_"), "the benchmark drops databases that are named for it, and no others"
    with administrator() as server:
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def settled(database: str) -> None:
    """Vacuum, analyze and checkpoint, so that a copy owes the server nothing."""
    with administrator(database) as connection:
        connection.execute("VACUUM (ANALYZE, FREEZE)")
        connection.execute("CHECKPOINT")


@contextmanager
def scratch(*, of: str, to: str, owner: str = "core") -> Iterator[str]:
    """A copy for one measurement; yields its prefix and drops it afterwards."""
    copy(of=of, to=to, owner=owner)
    with administrator() as server:
        server.execute("CHECKPOINT")
    time.sleep(0.5)
    try:
        yield to
    finally:
        drop(f"{to}{owner}")
