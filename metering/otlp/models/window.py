"""Windows of consumption whose events changed since they were last aggregated (T13, M5)."""

import pgtrigger
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import F, Q

from metering.otlp.models.event import CLUSTER_ID, EventKind
from outbox.guards import never_delete, refuse_when


class DirtyWindow(models.Model):
    """One half-open window of UTC time of one cluster and kind, marked in the transaction that stored events of it.

    Dirty while `marked_generation > cleared_generation`. Whoever aggregates reads `marked_generation` first, then the
    events, and sets `cleared_generation` to what was read, in one statement that requires `marked_generation` to be
    the same still; else the window stays dirty. The row stays for ever, so a generation never means two things.
    """

    pk = models.CompositePrimaryKey("kind", "cluster_id", "window_start")
    kind = models.TextField(choices=EventKind)
    cluster_id = models.CharField(max_length=19, db_collation="C")
    window_start = models.DateTimeField()
    marked_generation = models.BigIntegerField(db_default=1)
    cleared_generation = models.BigIntegerField(db_default=0)
    marked_at = models.DateTimeField(db_default=TransactionNow())

    owner_may_update = ("marked_generation", "cleared_generation", "marked_at")

    class Meta:
        db_table = "consumption_windows_dirty"
        constraints = [
            models.CheckConstraint(name="dirty_window_kind_closed", condition=Q(kind__in=EventKind.values)),
            models.CheckConstraint(name="dirty_window_cluster_decimal", condition=Q(cluster_id__regex=CLUSTER_ID)),
            models.CheckConstraint(
                name="dirty_window_generations",
                condition=Q(cleared_generation__gte=0, marked_generation__gte=F("cleared_generation")),
            ),
        ]
        indexes = [
            models.Index(
                name="dirty_window_waiting",
                fields=["marked_at", "kind", "cluster_id", "window_start"],
                condition=Q(marked_generation__gt=F("cleared_generation")),
            ),
        ]
        triggers = [
            *never_delete(name="dirty_window", message="A window's marks are never deleted."),
            refuse_when(
                name="dirty_window_forward",
                operation=pgtrigger.Update,
                condition="NEW.marked_generation < OLD.marked_generation"
                " OR NEW.cleared_generation < OLD.cleared_generation OR (NEW.kind, NEW.cluster_id, NEW.window_start)"
                " IS DISTINCT FROM (OLD.kind, OLD.cluster_id, OLD.window_start)",
                message="The generations of a window only grow.",
            ),
        ]
