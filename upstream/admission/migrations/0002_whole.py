"""A run is committed whole, or not at all."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("admission", "0001_initial")]

    operations = [migrations.RunSQL((SQL / "admission_is_whole.sql").read_text(), migrations.RunSQL.noop)]
