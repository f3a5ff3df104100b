"""How far each aggregate is applied, and which revisions wait for missing ones (O26)."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from outbox.guards import never_delete, refuse_when

_IDENTITY = (
    "projection_name",
    "projection_version",
    "producer",
    "aggregate_id",
    "event_id",
    "event_type",
    "waiting_revision",
    "detected_at",
)


class ProjectionAggregate(models.Model):
    """One aggregate of one producer in one build. Revision 0: known by name, nothing applied yet.

    Its row is the lock under which revisions are judged and a run meets its reservation.
    """

    pk = models.CompositePrimaryKey("aggregate_id", "producer", "projection_name", "projection_version")
    aggregate_id = models.TextField(db_collation="C")
    producer = models.TextField(db_collation="C")
    projection_name = models.TextField(db_collation="C")
    projection_version = models.TextField(db_collation="C")
    applied_revision = models.BigIntegerField()
    has_open_gap = models.BooleanField()

    owner_may_update = ("applied_revision", "has_open_gap")

    class Meta:
        db_table = "projection_aggregates"
        constraints = [
            models.CheckConstraint(name="projection_aggregate_from_0", condition=Q(applied_revision__gte=0)),
        ]
        triggers = [
            refuse_when(
                name="projection_aggregate_forward",
                operation=pgtrigger.Update,
                condition="NEW.applied_revision < OLD.applied_revision",
                message="An applied revision is never taken back; rebuild the projection instead.",
            ),
            *never_delete(name="projection_aggregate", message="Revisions are judged by it."),
        ]


class GapState(models.TextChoices):
    """Whether a revision still waits (closed)."""

    OPEN = "open", "Open: an earlier revision has not arrived"
    RESOLVED = "resolved", "Resolved: every earlier revision is applied"


class RevisionGap(models.Model):
    """One event that arrived before its predecessors: `missing_from` to `waiting_revision` − 1 had not arrived."""

    projection_name = models.TextField(db_collation="C")
    projection_version = models.TextField(db_collation="C")
    producer = models.TextField(db_collation="C")
    aggregate_id = models.TextField(db_collation="C")
    event_id = models.UUIDField()
    event_type = models.TextField()
    waiting_revision = models.BigIntegerField()
    missing_from = models.BigIntegerField()
    state = models.TextField(choices=GapState, default=GapState.OPEN)
    detected_at = models.DateTimeField(db_default=Now())
    resolved_at = models.DateTimeField(null=True)

    owner_may_update = ("missing_from", "state", "resolved_at")

    class Meta:
        db_table = "revision_gaps"
        verbose_name = "revision gap"
        constraints = [
            models.CheckConstraint(
                name="revision_gap_misses_something",
                condition=Q(missing_from__gte=1, missing_from__lt=F("waiting_revision")),
            ),
            models.CheckConstraint(
                name="revision_gap_state_closed",
                condition=Q(state="open", resolved_at=None) | Q(state="resolved") & ~Q(resolved_at=None),
            ),
            models.UniqueConstraint(
                name="revision_gap_one_per_event", fields=["event_id", "projection_name", "projection_version"]
            ),
        ]
        indexes = [
            models.Index(
                name="revision_gap_open",
                fields=["aggregate_id", "producer", "projection_name", "projection_version"],
                condition=Q(state="open"),
            ),
            models.Index(name="revision_gap_oldest", fields=["state", "detected_at"]),
        ]
        triggers = [
            refuse_when(
                name="revision_gap_born_open",
                operation=pgtrigger.Insert,
                condition="NEW.state <> 'open'",
                message="A gap is recorded open.",
            ),
            refuse_when(
                name="revision_gap_forward",
                operation=pgtrigger.Update,
                condition="OLD.state <> 'open' OR NEW.missing_from < OLD.missing_from OR "
                + " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in _IDENTITY),
                message="A gap narrows and is resolved once; its identity never changes.",
            ),
            *never_delete(name="revision_gap", message="A gap is evidence of what was missing, and when."),
        ]
