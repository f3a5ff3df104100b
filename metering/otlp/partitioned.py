"""Event tables as hypertables where TimescaleDB is installed in the database, else as range partitions by day."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

BY = "occurred_at"
TIMESCALE = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'timescaledb'"
MAKE_HYPERTABLE = """
SELECT {schema}.create_hypertable(%s, %s, chunk_time_interval => interval '1 day', create_default_indexes => false)
"""


class CreateEventTable(migrations.CreateModel):
    """`CreateModel` for a table of events. Their days are made by `telemetry_ensure_days`, by TimescaleDB itself."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        table = to_state.apps.get_model(app_label, self.name)._meta.db_table
        schema = timescale_schema(schema_editor.connection)
        if schema is not None:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            schema_editor.execute(MAKE_HYPERTABLE.format(schema=schema), [table, BY])
        else:
            with _partitioned(schema_editor):
                super().database_forwards(app_label, schema_editor, from_state, to_state)


def timescale_schema(connection: Any) -> str | None:
    """The schema of TimescaleDB's functions in this database, None where it is not installed."""
    with connection.cursor() as cursor:
        cursor.execute(TIMESCALE)
        row = cursor.fetchone()
    return str(row[0]) if row else None


@contextmanager
def _partitioned(schema_editor: BaseDatabaseSchemaEditor) -> Iterator[None]:
    plain = schema_editor.sql_create_table
    schema_editor.sql_create_table = f"{plain} PARTITION BY RANGE ({BY})"
    try:
        yield
    finally:
        schema_editor.sql_create_table = plain
