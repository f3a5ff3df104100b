"""A cluster that sends telemetry, and what the receiver does otherwise for it than for all."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from outbox.guards import never_delete, refuse_when

MOST_PER_SECOND = 1_000_000


class Mode(models.TextChoices):
    """By what the events of a token are attributed (T8)."""

    GATEWAY = "gateway", "Gateway: by manager_key_id, which every LLM event must carry"
    PER_CLUSTER = "per_cluster", "Per cluster: by the organization_id that the cluster's own collector states"


class Sink(models.TextChoices):
    """Where the receiver puts a cluster's events; the steps of the ramp (T12)."""

    LOGGING = "logging", "Logging: written to the log and kept nowhere else"
    FANOUT = "fanout", "Fanout: stored of record, then archived as well"
    TIMESCALE = "timescale", "Timescale: stored of record"


class Cluster(models.Model):
    """Its id is the decimal number that every stored event carries. Its row lock orders what happens to its tokens."""

    cluster_id = models.BigIntegerField(primary_key=True)
    name = models.TextField(unique=True)
    token_mode = models.TextField(choices=Mode, help_text="The mode that the next token gets.")
    sink = models.TextField(choices=Sink, null=True, help_text="Empty: the receiver's own setting.")
    rate_per_second = models.IntegerField(null=True, help_text="Empty: the receiver's own setting.")
    rate_burst = models.IntegerField(null=True, help_text="Requests at once; given together with the rate.")
    created_at = models.DateTimeField(db_default=Now())

    owner_may_update = ("name", "token_mode", "sink", "rate_per_second", "rate_burst")

    class Meta:
        db_table = "clusters"
        constraints = [
            models.CheckConstraint(name="cluster_id_positive", condition=Q(cluster_id__gte=1)),
            models.CheckConstraint(
                name="cluster_name", condition=Q(LessThanOrEqual(Length("name"), 200), name__regex=r"^[^[:cntrl:]]+$")
            ),
            models.CheckConstraint(name="cluster_mode_closed", condition=Q(token_mode__in=Mode.values)),
            models.CheckConstraint(name="cluster_sink_closed", condition=Q(sink=None) | Q(sink__in=Sink.values)),
            models.CheckConstraint(
                name="cluster_rate_whole",
                condition=Q(rate_per_second=None, rate_burst=None)
                | Q(
                    rate_per_second__isnull=False,
                    rate_burst__isnull=False,
                    rate_per_second__gte=1,
                    rate_per_second__lte=MOST_PER_SECOND,
                    rate_burst__gte=1,
                    rate_burst__lte=MOST_PER_SECOND,
                ),
            ),
        ]
        triggers = [
            *never_delete(name="cluster", message="A cluster is never deleted; revoke its tokens."),
            refuse_when(
                name="cluster_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.cluster_id, NEW.created_at) IS DISTINCT FROM (OLD.cluster_id, OLD.created_at)",
                message="The id of a cluster never changes: stored events carry it.",
            ),
        ]
