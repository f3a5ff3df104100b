"""Balances follow entries, and references carry the currency and charge source."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_initial")]

    operations = [migrations.RunSQL((SQL / "balances.sql").read_text(), migrations.RunSQL.noop)]
