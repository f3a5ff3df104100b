"""Events that contradict what is stored: kept with all they said, billed nowhere (T6)."""

import pgtrigger
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import F, Q

from metering.otlp.models.event import CLUSTER_ID, EventKind
from outbox.guards import is_sha256, never_delete, refuse_when


class ConflictReason(models.TextChoices):
    """In what an arrival contradicts what was stored before it. What was stored first stands."""

    CONTENT = "content", "Content: the same key with other values"
    CLUSTER = "cluster", "Cluster: the same key from another cluster"
    TWO_TIMES = "two_times", "Two times: the same event id at another time; that row is stored, and never consumed"


class Conflict(models.Model):
    """One contradiction, however often it arrives. For `two_times` its key is a stored row that is never consumed."""

    conflict_id = models.BigAutoField(primary_key=True)
    kind = models.TextField(choices=EventKind)
    reason = models.TextField(choices=ConflictReason)
    event_id = models.CharField(max_length=255, db_collation="C")
    occurred_at = models.DateTimeField()
    cluster_id = models.CharField(max_length=19, help_text="The cluster that sent what is refused.")
    standing_cluster_id = models.CharField(max_length=19, help_text="The cluster of the event that stands.")
    standing_occurred_at = models.DateTimeField(help_text="The time of the event that stands.")
    fields = models.TextField(help_text="The fields that differ, with commas.")
    arrived = models.TextField(help_text="All that the refused event said, as JSON.")
    arrived_sha256 = models.TextField()
    arrivals = models.BigIntegerField(db_default=1)
    first_at = models.DateTimeField(db_default=TransactionNow())
    last_at = models.DateTimeField(db_default=TransactionNow())

    owner_may_update = ("arrivals", "last_at")

    class Meta:
        db_table = "telemetry_conflicts"
        constraints = [
            models.CheckConstraint(name="conflict_kind_closed", condition=Q(kind__in=EventKind.values)),
            models.CheckConstraint(name="conflict_reason_closed", condition=Q(reason__in=ConflictReason.values)),
            models.CheckConstraint(name="conflict_digest", condition=is_sha256("arrived_sha256")),
            models.CheckConstraint(
                name="conflict_clusters_decimal",
                condition=Q(cluster_id__regex=CLUSTER_ID, standing_cluster_id__regex=CLUSTER_ID),
            ),
            models.CheckConstraint(
                name="conflict_shape",
                condition=Q(arrivals__gte=1)
                & (
                    (Q(reason=ConflictReason.TWO_TIMES) & ~Q(occurred_at=F("standing_occurred_at")))
                    | (~Q(reason=ConflictReason.TWO_TIMES) & Q(occurred_at=F("standing_occurred_at")))
                ),
            ),
            models.UniqueConstraint(
                name="conflict_once", fields=["event_id", "occurred_at", "kind", "reason", "arrived_sha256"]
            ),
        ]
        indexes = [
            models.Index(name="conflict_of_cluster", fields=["cluster_id", "conflict_id"]),
            models.Index(name="conflict_by_reason", fields=["reason", "conflict_id"]),
            models.Index(
                name="conflict_excluded",
                fields=["kind", "event_id", "occurred_at"],
                condition=Q(reason=ConflictReason.TWO_TIMES),
            ),
        ]
        triggers = [
            *never_delete(name="conflict", message="A conflict is never deleted."),
            refuse_when(
                name="conflict_frozen",
                operation=pgtrigger.Update,
                condition="NEW.arrivals <= OLD.arrivals OR NEW.last_at < OLD.last_at OR (NEW.conflict_id, NEW.kind,"
                " NEW.reason, NEW.event_id, NEW.occurred_at, NEW.cluster_id, NEW.standing_cluster_id,"
                " NEW.standing_occurred_at, NEW.fields, NEW.arrived, NEW.arrived_sha256, NEW.first_at)"
                " IS DISTINCT FROM (OLD.conflict_id, OLD.kind, OLD.reason, OLD.event_id, OLD.occurred_at,"
                " OLD.cluster_id, OLD.standing_cluster_id, OLD.standing_occurred_at, OLD.fields, OLD.arrived,"
                " OLD.arrived_sha256, OLD.first_at)",
                message="Of a conflict only the count of its arrivals grows.",
            ),
        ]
