"""The first projection version and its active pointer; builds and pointer may only name registered versions."""

from django.db import migrations

from outbox.contracts.first_release import PROJECTION_NAME, PROJECTION_VERSION

TO_VERSION = """
    ALTER TABLE {table} ADD CONSTRAINT {table}_version
    FOREIGN KEY (projection_name, projection_version) REFERENCES projection_versions
"""


def seed(apps, schema_editor):
    alias = schema_editor.connection.alias
    apps.get_model("projector", "ProjectionVersion").objects.using(alias).create(
        projection_name=PROJECTION_NAME, projection_version=PROJECTION_VERSION
    )
    apps.get_model("projector", "ActiveProjection").objects.using(alias).create(
        projection_name=PROJECTION_NAME, projection_version=PROJECTION_VERSION, epoch=1
    )


class Migration(migrations.Migration):
    dependencies = [("projector", "0001_initial")]

    operations = [
        *[
            migrations.RunSQL(
                TO_VERSION.format(table=table),
                f"ALTER TABLE {table} DROP CONSTRAINT {table}_version",
            )
            for table in ("projection_active_pointers", "projection_build_runs")
        ],
        migrations.RunPython(seed, migrations.RunPython.noop),
    ]
