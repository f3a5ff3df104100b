"""What a database's catalogs hold, as comparable sets."""

from typing import Any

from django.db import connections

from config.owners import Owner

SNAPSHOT = """
SELECT 'table', c.relname, c.relkind::text, coalesce(c.relacl::text, ''), coalesce(c.reloptions::text, ''),
       pg_get_userbyid(c.relowner)
  FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S', 'v')
   AND NOT c.relispartition
UNION ALL
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), coalesce(a.attacl::text, ''),
       coalesce(pg_get_expr(d.adbin, d.adrelid), '') || a.attnotnull::text || a.attgenerated::text
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', ''
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT 'index', tablename, indexname, indexdef, '', '' FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), tgenabled::text, ''
  FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT 'function', proname, pg_get_function_identity_arguments(oid), md5(prosrc), coalesce(proacl::text, ''),
       pg_get_userbyid(proowner) || prosecdef::text || coalesce(proconfig::text, '')
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'database', '', '', '', coalesce(datacl::text, ''), '' FROM pg_database WHERE datname = current_database()
UNION ALL
SELECT 'schema', nspname, '', '', coalesce(nspacl::text, ''), '' FROM pg_namespace WHERE nspname !~ '^pg_'
UNION ALL
SELECT 'setting', pg_get_userbyid(s.setrole), '', s.setconfig::text, '', ''
  FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()
"""
ROWS = {
    "django_migrations": "SELECT 'migration', app, name, '', '', '' FROM django_migrations",
    "delivery_set_versions": "SELECT 'delivery set', delivery_set_version, status, activated_at::text, '', ''"
    " FROM delivery_set_versions",
}
"""What a migration run writes into tables, where these tables are."""

Snapshot = frozenset[tuple[Any, ...]]


def snapshot(cursor: Any) -> Snapshot:
    """Everything of one database that a migration or a grant could change."""
    cursor.execute(SNAPSHOT)
    found = set(cursor.fetchall())
    for table, statement in ROWS.items():
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [table])
        if cursor.fetchone()[0]:
            cursor.execute(statement)
            found |= set(cursor.fetchall())
    return frozenset(found)


def snapshot_of(owner: Owner) -> Snapshot:
    """The snapshot of an owner's database, seen by the schema role."""
    with connections[owner.schema_alias].cursor() as cursor:
        return snapshot(cursor)


def names(owner: Owner, statement: str) -> set[tuple[Any, ...]]:
    """The rows of a catalog query in the owner's database, as the schema role."""
    with connections[owner.schema_alias].cursor() as cursor:
        cursor.execute(statement)
        return set(cursor.fetchall())
