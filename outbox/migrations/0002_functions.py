"""The controlled function and the storage parameters."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("outbox", "0001_initial")]

    operations = [
        migrations.RunSQL((SQL / "publish.sql").read_text(), "DROP FUNCTION outbox_publish(uuid[])"),
        migrations.RunSQL((SQL / "payload.sql").read_text(), "DROP FUNCTION event_payload(outbox_events)"),
        migrations.RunSQL((SQL / "storage.sql").read_text(), migrations.RunSQL.noop),
    ]
