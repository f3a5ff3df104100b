"""Fixtures for tests on the real seven databases.

Databases are made once and kept between runs; they are made again when a migration or an SQL file changed. Use

- `database`: real connections and real commits on every alias, also from threads and child processes. Afterwards the
  tables that the test wrote are emptied under the schema role, and nothing else is touched.
- `run_command`: a `manage.py` command in this process, `run_django` one in a process of its own, on the same databases.

Django's own `db` fixtures are not used: they wrap every alias in a transaction, which is what these tests are about.
"""

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import ManagementUtility, call_command
from django.db import connections

from config.owners import OWNERS, Owner
from config.provision import provision

ROOT = Path(__file__).resolve().parent.parent
SEEDED = frozenset(
    {
        "django_migrations",
        "django_content_type",
        "auth_permission",
        "delivery_set_versions",
        "delivery_set_events",
        "delivery_set_members",
        "projection_versions",
        "projection_active_pointers",
    }
)
"""Filled by migrations or by registering the first release; a test that changes them cleans up after itself."""


def _schema_fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(ROOT.glob("*/**/*")):
        in_schema = "migrations" in path.parts or path.suffix == ".sql"
        if in_schema and path.suffix in {".py", ".sql"} and ".venv" not in path.parts:
            digest.update(path.read_bytes())
    for name in ("config/provision.py", "config/owners.py", "outbox/contracts/first_release.py"):
        digest.update((ROOT / name).read_bytes())
    for path in sorted([*ROOT.glob("*/models.py"), *ROOT.glob("*/*/models.py"), *ROOT.glob("*/models/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: Any) -> None:
    """Make the databases, or keep those of the last run if the schema is the same."""
    with django_db_blocker.unblock():
        stamp = _state() / f"schema-{settings.DATABASES['default']['NAME']}"
        fingerprint = _schema_fingerprint()
        if stamp.exists() and stamp.read_text() == fingerprint:
            for owner in OWNERS:
                empty_tables(owner)
        else:
            for owner in OWNERS:
                _drop(owner)
            call_command("migrate_owners", verbosity=0)
            stamp.write_text(fingerprint)
        connections.close_all()


def _state() -> Path:
    path = Path(os.environ.get("STATE_DIR", ROOT / ".state" / "test"))
    path.mkdir(parents=True, exist_ok=True)
    return path


def _drop(owner: Owner) -> None:
    import psycopg
    from psycopg import sql

    from config.databases import address_of

    address = address_of(owner)
    assert address.name.startswith("test_"), "tests drop databases that are named for tests, and no others"
    with psycopg.connect(
        host=address.host, port=address.port, user=address.user, password=address.password, dbname="postgres",
        autocommit=True,
    ) as server:  # fmt: skip
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(address.name)))
    provision(owner)


def empty_tables(owner: Owner) -> None:
    """Empty the tables that hold rows, under the schema role: the only one that may lift the truncate guards by DDL."""
    with connections[owner.schema_alias].cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = sorted({name for (name,) in cursor.fetchall()} - SEEDED)
        if not tables:
            return
        probe = " UNION ALL ".join(f"(SELECT '{table}' FROM \"{table}\" LIMIT 1)" for table in tables)
        cursor.execute(probe)
        touched = _with_referencing({name for (name,) in cursor.fetchall()}, cursor)
        if not touched:
            return
        names = ", ".join(f'"{name}"' for name in touched)
        cursor.execute("BEGIN")
        for name in touched:
            cursor.execute(f'ALTER TABLE "{name}" DISABLE TRIGGER USER')
        cursor.execute(f"TRUNCATE {names}")
        for name in touched:
            cursor.execute(f'ALTER TABLE "{name}" ENABLE TRIGGER USER')
        cursor.execute("COMMIT")


def _with_referencing(touched: set[str], cursor: Any) -> list[str]:
    """The touched tables, all that refer to them, and their partitions: TRUNCATE takes them together."""
    cursor.execute(
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f' UNION ALL"
        " SELECT inhrelid::regclass::text, inhparent::regclass::text FROM pg_inherits"
        " JOIN pg_class ON oid = inhrelid AND relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
    )
    references = [(child.strip('"'), parent.strip('"')) for child, parent in cursor.fetchall()]
    while more := {child for child, parent in references if parent in touched} - touched:
        touched |= more
    return sorted(touched)


@pytest.fixture
def database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Real connections and commits on every alias."""
    with django_db_blocker.unblock():
        yield
        for connection in connections.all(initialized_only=True):
            connection.close()
        for owner in OWNERS:
            empty_tables(owner)
        connections.close_all()


@pytest.fixture
def run_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `manage.py` with arguments in this process: what it prints and the exit code that its process would have."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        out, err, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                ManagementUtility(["manage.py", *arguments]).execute()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except Exception:
                traceback.print_exc()
                code = 1
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def run_django() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `manage.py` with arguments in a process of its own; `env` adds to the environment."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env={**os.environ, **(env or {})},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
