"""Lines and charges stand in a window, and a line's digest is of what tells it apart."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("consumption", "0001_initial")]

    operations = [migrations.RunSQL((SQL / "lines.sql").read_text(), migrations.RunSQL.noop)]
