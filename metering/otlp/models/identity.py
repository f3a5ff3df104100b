"""Every event id with the one time under which it stands, filled behind the receiver's back (T6)."""

import pgtrigger
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from metering.otlp.models.event import EventKind
from outbox.guards import Guard, never_delete, never_truncate, refusal, refuse_when


class EventIdentity(models.Model):
    """The first stored time of one event id. Any other time of it is a conflict."""

    pk = models.CompositePrimaryKey("event_id", "kind")
    event_id = models.CharField(max_length=255, db_collation="C")
    kind = models.TextField(choices=EventKind)
    occurred_at = models.DateTimeField()

    owner_may_delete = True

    class Meta:
        db_table = "telemetry_event_identities"
        verbose_name_plural = "event identities"
        constraints = [models.CheckConstraint(name="identity_kind_closed", condition=Q(kind__in=EventKind.values))]
        indexes = [BrinIndex(name="identity_by_time", fields=["occurred_at"], pages_per_range=16, autosummarize=True)]
        triggers = [
            refuse_when(
                name="identity_kept",
                operation=pgtrigger.Update,
                condition="true",
                message="What an event id stands for never changes.",
            ),
            Guard(
                name="identity_delete",
                when=pgtrigger.Before,
                operation=pgtrigger.Delete,
                func=f"""
                    IF NOT EXISTS (SELECT 1 FROM public.telemetry_retention r
                                    WHERE r.kind = OLD.kind AND r.retained_from > OLD.occurred_at) THEN
                        {refusal("identity_delete", "An identity goes only after its event is gone.")}
                    END IF;
                    RETURN OLD;
                """,
            ),
            never_truncate(name="identity", message="An identity goes only after its event is gone."),
        ]


class IdentityScan(models.Model):
    """Up to which time of receipt the events of a kind have been looked at."""

    kind = models.TextField(primary_key=True, choices=EventKind)
    scanned_until = models.DateTimeField()

    owner_may_update = ("scanned_until",)

    class Meta:
        db_table = "telemetry_identity_scans"
        constraints = [models.CheckConstraint(name="identity_scan_kind_closed", condition=Q(kind__in=EventKind.values))]
        triggers = [
            *never_delete(name="identity_scan", message="Where the scan stands is never deleted."),
            refuse_when(
                name="identity_scan_forward",
                operation=pgtrigger.Update,
                condition="NEW.scanned_until < OLD.scanned_until OR NEW.kind IS DISTINCT FROM OLD.kind",
                message="The scan only moves forward.",
            ),
        ]
