"""Indexes for what operators look at: the delivery rate of the last minutes, and recent failures."""

import django.contrib.postgres.indexes
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("outbox", "0002_functions")]

    operations = [
        migrations.AddIndex(
            model_name="deliveryattemptfinish",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["finished_at"], name="outbox_attempt_finish_time", pages_per_range=16
            ),
        ),
        migrations.AddIndex(
            model_name="deliveryattemptfinish",
            index=models.Index(
                condition=models.Q(("outcome", "acknowledged"), _negated=True),
                fields=["-finished_at"],
                name="outbox_attempt_finish_failed",
            ),
        ),
    ]
