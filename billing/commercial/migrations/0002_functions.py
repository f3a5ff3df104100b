"""The calendar of periods, the decision, and the counters that follow reservations."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("commercial", "0001_initial")]

    operations = [
        migrations.RunSQL((SQL / f"{name}.sql").read_text(), migrations.RunSQL.noop)
        for name in ("periods", "reserve", "whole", "counts")
    ]
