"""Accounts, chains and postings of telemetry charges, held together by the database."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("telemetry_charges", "0001_initial")]

    operations = [migrations.RunSQL((SQL / "walls.sql").read_text(), migrations.RunSQL.noop)]
