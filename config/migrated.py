"""Which migrations an owner's database still lacks, seen through its read role."""

from functools import cache

from django.db import router
from django.db.backends.utils import CursorWrapper
from django.db.migrations.loader import MigrationLoader

from config.owners import Owner

HAS_TABLE = "SELECT to_regclass('public.django_migrations') IS NOT NULL"
APPLIED = "SELECT app, name FROM django_migrations"


@cache
def expected(owner: Owner) -> frozenset[tuple[str, str]]:
    """(app, name) of every migration that belongs into the owner's database."""
    graph = MigrationLoader(None).graph
    return frozenset(key for key in graph.nodes if router.allow_migrate(owner.alias, key[0]))


def unapplied(owner: Owner, cursor: CursorWrapper) -> dict[str, list[str]]:
    """The names of missing migrations by app, in order; empty when the database is up to date."""
    cursor.execute(HAS_TABLE)
    applied: set[tuple[str, str]] = set()
    if cursor.fetchone() == (True,):
        cursor.execute(APPLIED)
        applied = set(cursor.fetchall())
    missing: dict[str, list[str]] = {}
    for app, name in sorted(expected(owner) - applied):
        missing.setdefault(app, []).append(name)
    return missing
