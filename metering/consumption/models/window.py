"""The half-open windows of UTC time in which consumption is counted (T13, M5)."""

import pgtrigger
from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import Q

from metering.otlp.models import EventKind
from outbox.guards import Guard, append_only, never_delete, refusal, refuse_when


class WindowLength(models.Model):
    """The one length of all windows of this store, fixed with the first of them: two lengths would overlap."""

    single = models.BooleanField(primary_key=True, db_default=True)
    seconds = models.IntegerField()
    fixed_at = models.DateTimeField(db_default=TransactionNow())

    class Meta:
        db_table = "consumption_window_length"
        constraints = [
            models.CheckConstraint(name="consumption_window_length_one", condition=Q(single=True)),
            models.CheckConstraint(
                name="consumption_window_length_bounds", condition=Q(seconds__gte=1, seconds__lte=86_400)
            ),
        ]
        triggers = append_only(name="consumption_window_length", message="The length of windows is fixed for ever.")


class ConsumptionWindow(models.Model):
    """One window of one cluster and kind. Whoever aggregates it, or moves anything of it, holds its row.

    An event at `window_end` belongs to the next window.
    """

    pk = models.CompositePrimaryKey("kind", "cluster_id", "window_start")
    kind = models.TextField(choices=EventKind)
    cluster_id = models.CharField(max_length=19, db_collation="C")
    window_start = models.DateTimeField()
    window_end = models.DateTimeField(help_text="The first moment after the window.")
    revision = models.BigIntegerField(db_default=0, help_text="How often it was aggregated.")
    aggregated_generation = models.BigIntegerField(db_default=0, help_text="The mark that the last time saw.")
    events = models.BigIntegerField(db_default=0, help_text="Events counted the last time.")
    opened_at = models.DateTimeField(db_default=TransactionNow())
    aggregated_at = models.DateTimeField(null=True)

    owner_may_update = ("revision", "aggregated_generation", "events", "aggregated_at")

    class Meta:
        db_table = "consumption_windows"
        constraints = [
            models.CheckConstraint(name="consumption_window_kind_closed", condition=Q(kind__in=EventKind.values)),
            models.CheckConstraint(
                name="consumption_window_shape",
                condition=Q(revision=0, aggregated_generation=0, events=0, aggregated_at=None)
                | Q(revision__gte=1, aggregated_generation__gte=1, events__gte=0, aggregated_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="consumption_window_by_time", fields=["window_start", "kind", "cluster_id"]),
            models.Index(name="consumption_window_of_cluster", fields=["cluster_id", "window_start", "kind"]),
        ]
        triggers = [
            *never_delete(name="consumption_window", message="A window is never deleted."),
            Guard(
                name="consumption_window_length",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                declare=[("span", "interval")],
                func=f"""
                    SELECT make_interval(secs => l.seconds) INTO span FROM public.consumption_window_length l;
                    IF (isfinite(NEW.window_start) AND NEW.window_end = NEW.window_start + span
                        AND date_bin(span, NEW.window_start, timestamptz 'epoch') = NEW.window_start) IS NOT TRUE THEN
                        {refusal("consumption_window_length", "A window has the one length, and begins at a multiple.")}
                    END IF;
                    RETURN NEW;
                """,
            ),
            refuse_when(
                name="consumption_window_forward",
                operation=pgtrigger.Update,
                condition="NEW.revision < OLD.revision OR NEW.aggregated_generation < OLD.aggregated_generation"
                " OR (NEW.kind, NEW.cluster_id, NEW.window_start, NEW.window_end, NEW.opened_at) IS DISTINCT FROM"
                " (OLD.kind, OLD.cluster_id, OLD.window_start, OLD.window_end, OLD.opened_at)",
                message="A window keeps its place, and its revisions only grow.",
            ),
        ]
