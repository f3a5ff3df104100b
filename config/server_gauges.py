"""What stands behind every owner: sessions, dead rows, migrations, read from its database at scrape (D19, O33)."""

from collections import Counter
from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from config.migrated import unapplied
from config.owners import Owner
from config.provision import models_of
from outbox.gauges import Sample
from outbox.metrics import OTHER, Kind, Metric

GAUGES: tuple[Metric, ...] = (
    Metric("owner_connections", Kind.GAUGE, ("owner", "role"), "Sessions on the owner's database by its LOGIN roles."),
    Metric("owner_max_connections", Kind.GAUGE, ("owner",), "What the owner's server accepts, for all its databases."),
    Metric(
        "owner_idle_in_transaction_seconds",
        Kind.GAUGE,
        ("owner",),
        "For how long the longest idle session has been holding its transaction open.",
    ),
    Metric(
        "owner_oldest_transaction_seconds",
        Kind.GAUGE,
        ("owner",),
        "Age of the oldest transaction, idle or working; vacuum cannot clean what ended after it began.",
    ),
    Metric("owner_dead_tuples", Kind.GAUGE, ("owner", "table"), "Row versions that wait for vacuum."),
    Metric(
        "owner_unapplied_migrations", Kind.GAUGE, ("owner",), "Migrations that this release has and the database not."
    ),
)

CONNECTIONS = "SELECT usename, count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY usename"
MAX_CONNECTIONS = "SELECT current_setting('max_connections')::int"
HAS_SESSION_AGES = "SELECT to_regprocedure('public.session_ages()') IS NOT NULL"
SESSION_AGES = "SELECT idle_in_transaction_seconds, transaction_seconds FROM public.session_ages()"
DEAD_TUPLES = "SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE relname = ANY(%s)"


def read(owner: Owner, cursor: CursorWrapper) -> Iterator[Sample]:
    """The samples of `GAUGES`. Session ages are missing where an administrator has not installed `session_ages`."""
    names = {owner.role_name(role): str(role) for role in owner.roles}
    cursor.execute(CONNECTIONS)
    used: Counter[str] = Counter(dict.fromkeys(names.values(), 0))
    for user, count in cursor.fetchall():
        used[names.get(user, OTHER)] += count
    for role, count in used.items():
        yield Sample("owner_connections", (owner.name, role), float(count))
    cursor.execute(MAX_CONNECTIONS)
    yield Sample("owner_max_connections", (owner.name,), float(cursor.fetchone()[0]))
    cursor.execute(HAS_SESSION_AGES)
    if cursor.fetchone()[0]:
        cursor.execute(SESSION_AGES)
        idle, working = cursor.fetchone()
        yield Sample("owner_idle_in_transaction_seconds", (owner.name,), float(idle))
        yield Sample("owner_oldest_transaction_seconds", (owner.name,), float(working))
    cursor.execute(DEAD_TUPLES, [[model._meta.db_table for model in models_of(owner)]])
    for table, dead in cursor.fetchall():
        yield Sample("owner_dead_tuples", (owner.name, table), float(dead))
    missing = sum(len(names) for names in unapplied(owner, cursor).values())
    yield Sample("owner_unapplied_migrations", (owner.name,), float(missing))
