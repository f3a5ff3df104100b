"""The days of the event tables, what consumption may count, and storage parameters."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("otlp", "0001_initial")]

    operations = [
        migrations.RunSQL((SQL / f"{name}.sql").read_text(), migrations.RunSQL.noop)
        for name in ("days", "consumable", "storage")
    ]
