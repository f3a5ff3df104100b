"""What arrived, counted per cluster in the transactions that stored it: accepted = stored + duplicates + conflicts."""

import pgtrigger
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import F, Q

from metering.otlp.models.event import CLUSTER_ID, EventKind
from outbox.guards import never_delete, refuse_when

BUCKET_SECONDS = 600
"""Ten minutes of receipt are one row of a cluster and kind."""
UNKNOWN_KIND = "unknown"
"""Stands for the kind of a dropped record whose event type names none."""


class Tally(models.Model):
    """Events of one kind accepted from one cluster within ten minutes."""

    pk = models.CompositePrimaryKey("cluster_id", "kind", "bucket")
    cluster_id = models.CharField(max_length=19, db_collation="C")
    kind = models.TextField(choices=EventKind)
    bucket = models.DateTimeField(help_text="The ten minutes of receipt that begin here.")
    accepted = models.BigIntegerField()
    stored = models.BigIntegerField()
    duplicates = models.BigIntegerField()
    conflicts = models.BigIntegerField()
    last_at = models.DateTimeField(db_default=TransactionNow())

    owner_may_update = ("accepted", "stored", "duplicates", "conflicts", "last_at")

    class Meta:
        db_table = "telemetry_tallies"
        verbose_name_plural = "tallies"
        constraints = [
            models.CheckConstraint(name="tally_kind_closed", condition=Q(kind__in=EventKind.values)),
            models.CheckConstraint(name="tally_cluster_decimal", condition=Q(cluster_id__regex=CLUSTER_ID)),
            models.CheckConstraint(
                name="tally_adds_up",
                condition=Q(accepted=F("stored") + F("duplicates") + F("conflicts"))
                & Q(stored__gte=0, duplicates__gte=0, conflicts__gte=0),
            ),
        ]
        indexes = [models.Index(name="tally_by_time", fields=["bucket", "cluster_id", "kind"])]
        triggers = [
            *never_delete(name="tally", message="A tally is never deleted."),
            refuse_when(
                name="tally_only_grows",
                operation=pgtrigger.Update,
                condition="NEW.stored < OLD.stored OR NEW.duplicates < OLD.duplicates OR NEW.conflicts < OLD.conflicts"
                " OR (NEW.cluster_id, NEW.kind, NEW.bucket) IS DISTINCT FROM (OLD.cluster_id, OLD.kind, OLD.bucket)",
                message="A tally only grows.",
            ),
        ]


class Drop(models.Model):
    """Records of one cluster dropped for one reason within ten minutes (T7)."""

    pk = models.CompositePrimaryKey("cluster_id", "kind", "reason", "bucket")
    cluster_id = models.CharField(max_length=19, db_collation="C")
    kind = models.TextField(choices=[*EventKind.choices, (UNKNOWN_KIND, "Unknown: the event type names no kind")])
    reason = models.TextField(help_text="The contract's name of the field at fault.")
    bucket = models.DateTimeField()
    dropped = models.BigIntegerField()
    last_event_id = models.CharField(max_length=255, null=True)
    last_at = models.DateTimeField(db_default=TransactionNow())

    owner_may_update = ("dropped", "last_event_id", "last_at")

    class Meta:
        db_table = "telemetry_drops"
        constraints = [
            models.CheckConstraint(name="drop_kind_closed", condition=Q(kind__in=[*EventKind.values, UNKNOWN_KIND])),
            models.CheckConstraint(name="drop_cluster_decimal", condition=Q(cluster_id__regex=CLUSTER_ID)),
            models.CheckConstraint(name="drop_counts", condition=Q(dropped__gte=1)),
        ]
        indexes = [models.Index(name="drop_by_time", fields=["bucket", "cluster_id", "kind", "reason"])]
        triggers = [
            *never_delete(name="drop", message="A count of dropped records is never deleted."),
            refuse_when(
                name="drop_only_grows",
                operation=pgtrigger.Update,
                condition="NEW.dropped <= OLD.dropped OR (NEW.cluster_id, NEW.kind, NEW.reason, NEW.bucket)"
                " IS DISTINCT FROM (OLD.cluster_id, OLD.kind, OLD.reason, OLD.bucket)",
                message="A count of dropped records only grows.",
            ),
        ]
