"""Projection versions, the pointer to the active one, and what each build has applied (O8, O26)."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from outbox.guards import append_only, never_delete, refuse_when


class ProjectionVersion(models.Model):
    """One version of one projection. Its rows stand beside those of other versions and never mix with them."""

    pk = models.CompositePrimaryKey("projection_name", "projection_version")
    projection_name = models.TextField(db_collation="C")
    projection_version = models.TextField(db_collation="C")
    registered_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "projection_versions"
        verbose_name = "projection version"
        triggers = append_only(name="projection_version", message="Receipts name a projection version; it is kept.")


class ActiveProjection(models.Model):
    """The version that readers see. It moves by compare-and-set on `epoch`, so a late leader changes nothing."""

    projection_name = models.TextField(primary_key=True, db_collation="C")
    projection_version = models.TextField(db_collation="C")
    epoch = models.BigIntegerField()
    activated_at = models.DateTimeField(db_default=Now())

    owner_may_update = ("projection_version", "epoch", "activated_at")

    class Meta:
        db_table = "projection_active_pointers"
        verbose_name = "active projection"
        constraints = [models.CheckConstraint(name="projection_pointer_epoch_from_1", condition=Q(epoch__gte=1))]
        triggers = [
            refuse_when(
                name="projection_pointer_next_epoch",
                operation=pgtrigger.Update,
                condition="NEW.projection_name <> OLD.projection_name OR NEW.epoch <> OLD.epoch + 1",
                message="The active pointer moves to the next epoch of the same projection; read it again.",
            ),
            *never_delete(name="projection_pointer", message="Readers need the active pointer."),
        ]


class ProjectionBuildRun(models.Model):
    """What one writer of one build has applied so far, and when last; it says nothing about what has not arrived.

    Each database connection adds to one of a few rows, so that parallel inbox transactions do not wait for each other.
    """

    pk = models.CompositePrimaryKey("projection_name", "projection_version", "writer")
    projection_name = models.TextField(db_collation="C")
    projection_version = models.TextField(db_collation="C")
    writer = models.SmallIntegerField()
    runs = models.BigIntegerField(help_text="Inbox transactions that applied something.")
    applied_events = models.BigIntegerField()
    last_event_id = models.UUIDField()
    last_applied_at = models.DateTimeField()

    owner_may_update = ("runs", "applied_events", "last_event_id", "last_applied_at")

    class Meta:
        db_table = "projection_build_runs"
        verbose_name = "projection build"
        constraints = [
            models.CheckConstraint(
                name="projection_build_counts_events", condition=Q(runs__gte=1, applied_events__gte=models.F("runs"))
            ),
        ]
        triggers = [
            refuse_when(
                name="projection_build_only_grows",
                operation=pgtrigger.Update,
                condition="NEW.runs <= OLD.runs OR NEW.applied_events <= OLD.applied_events",
                message="A build only adds to what it has applied.",
            ),
            *never_delete(name="projection_build", message="A build's summary is kept with its projection version."),
        ]
