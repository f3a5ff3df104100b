"""A reservation's money is the hold of the same id."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("finalization", "0001_initial")]

    operations = [migrations.RunSQL((SQL / "reservation_has_hold.sql").read_text(), migrations.RunSQL.noop)]
