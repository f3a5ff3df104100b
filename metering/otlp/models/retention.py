"""From when on events are kept, and how many were there before: what is gone is never stored again by a late resend."""

import pgtrigger
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import Q

from metering.otlp.models.event import EventKind
from outbox.guards import append_only, never_delete, refuse_when


class Retention(models.Model):
    """Events of a kind that occurred before `retained_from` are gone, and refused if they come again."""

    kind = models.TextField(primary_key=True, choices=EventKind)
    retained_from = models.DateTimeField()

    owner_may_insert = False
    owner_may_execute = (
        "telemetry_ensure_days(text, date[])",
        "telemetry_expire_days(text, date, integer)",
    )

    class Meta:
        db_table = "telemetry_retention"
        constraints = [models.CheckConstraint(name="retention_kind_closed", condition=Q(kind__in=EventKind.values))]
        triggers = [
            *never_delete(name="retention", message="What is gone stays gone."),
            refuse_when(
                name="retention_forward",
                operation=pgtrigger.Update,
                condition="NEW.retained_from < OLD.retained_from OR NEW.kind IS DISTINCT FROM OLD.kind",
                message="Retention only moves forward: what is gone is not stored again.",
            ),
        ]


class ExpiredDay(models.Model):
    """Events of one cluster that went with a day, so that what was stored can still be accounted for."""

    pk = models.CompositePrimaryKey("kind", "cluster_id", "day")
    kind = models.TextField(choices=EventKind)
    cluster_id = models.CharField(max_length=19, db_collation="C")
    day = models.DateField()
    events = models.BigIntegerField()
    expired_at = models.DateTimeField(db_default=TransactionNow())

    owner_may_insert = False

    class Meta:
        db_table = "telemetry_expired_days"
        constraints = [
            models.CheckConstraint(name="expired_day_kind_closed", condition=Q(kind__in=EventKind.values)),
            models.CheckConstraint(name="expired_day_counts", condition=Q(events__gte=1)),
        ]
        triggers = append_only(name="expired_day", message="What is gone was counted once.")
