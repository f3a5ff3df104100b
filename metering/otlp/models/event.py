"""The two event tables of record, keyed by (event_id, occurred_at) without any window, and append-only (T5, T6).

Both are hypertables where TimescaleDB is installed in the database, else range partitions by UTC day. The same
statements serve both. The index of the key is ordered by time, so that new rows go to its end instead of all over it;
`EventIdentity` finds the time of an event id.
"""

from django.contrib.postgres.functions import TransactionNow
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from metering.clusters.models import Mode
from metering.otlp.fields import MAX_COUNT, MAX_LEVEL, MAX_TEXT
from outbox.guards import append_only

CLUSTER_ID = r"^[1-9][0-9]*$"
"""Decimal text, so that whoever joins it with a cluster parses a number; the column's length bounds it. (A counted
pattern would cost ten times as much.)"""


class EventKind(models.TextChoices):
    """The two kinds of events, by their `event_type`."""

    LLM_BILLING = "llm_billing", "LLM billing: one call of a model"
    RESOURCE_UTILIZATION = "resource_utilization", "Resource utilization: one sample of a container's resource"


def text(**options: bool) -> "models.CharField[str, str]":
    """A stored text; never empty, because an empty string says nothing."""
    return models.CharField(max_length=MAX_TEXT, **options)  # type: ignore[arg-type]  # null and the like


def not_empty(*names: str) -> Q:
    """No text of these is an empty string."""
    return ~Q(*[(name, "") for name in names], _connector=Q.OR)


class Event(models.Model):
    """What both kinds share."""

    pk = models.CompositePrimaryKey("occurred_at", "event_id")
    event_id = models.CharField(max_length=MAX_TEXT, db_collation="C")
    occurred_at = models.DateTimeField(help_text="When it happened, as its producer froze it, cut to microseconds.")
    cluster_id = models.CharField(max_length=19, db_collation="C", help_text="From the token, never from the record.")
    source_mode = models.TextField(choices=Mode, help_text="The mode of the token it came with (T8).")
    tenant_name = text()
    namespace = text()
    organization_id = text(null=True)
    robot_id = text(null=True)
    cr_name = text(null=True)
    received_at = models.DateTimeField(db_default=TransactionNow())

    class Meta:
        abstract = True


class LlmBillingEvent(Event):
    """One call of a model. `organization_id` is evidence only where a gateway sent it."""

    model_name = text()
    provider = text()
    prompt_tokens = models.BigIntegerField()
    completion_tokens = models.BigIntegerField()
    cached_input_tokens = models.BigIntegerField(null=True)
    manager_key_id = text(null=True)
    k8s_pod_uid = text(null=True)

    owner_may_read = ("consumable_llm_billing_events",)

    class Meta:
        db_table = "llm_billing_events"
        verbose_name = "LLM billing event"
        constraints = [
            models.CheckConstraint(name="llm_billing_cluster_decimal", condition=Q(cluster_id__regex=CLUSTER_ID)),
            models.CheckConstraint(name="llm_billing_mode_closed", condition=Q(source_mode__in=Mode.values)),
            models.CheckConstraint(
                name="llm_billing_gateway_has_key",
                condition=Q(source_mode=Mode.PER_CLUSTER) | Q(manager_key_id__isnull=False),
            ),
            models.CheckConstraint(
                name="llm_billing_texts_not_empty",
                condition=not_empty("event_id", "tenant_name", "namespace", "model_name", "provider"),
            ),
            models.CheckConstraint(
                name="llm_billing_empty_is_null",
                condition=not_empty("organization_id", "robot_id", "cr_name", "manager_key_id", "k8s_pod_uid"),
            ),
            models.CheckConstraint(
                name="llm_billing_counts",
                condition=Q(
                    prompt_tokens__gte=0,
                    prompt_tokens__lte=MAX_COUNT,
                    completion_tokens__gte=0,
                    completion_tokens__lte=MAX_COUNT,
                ),
            ),
            models.CheckConstraint(
                name="llm_billing_cached_count",
                condition=Q(cached_input_tokens=None)
                | Q(cached_input_tokens__gte=0, cached_input_tokens__lte=MAX_COUNT),
            ),
        ]
        indexes = [
            models.Index(name="llm_billing_of_cluster", fields=["cluster_id", "occurred_at"]),
            BrinIndex(name="llm_billing_by_receipt", fields=["received_at"], pages_per_range=16, autosummarize=True),
        ]
        triggers = append_only(name="llm_billing", message="A stored event never changes.")


class ResourceUtilizationEvent(Event):
    """One sample of a container's resource."""

    resource_type = text()
    utilization = models.FloatField()
    above_threshold = models.BooleanField()
    pod_name = text(null=True)
    container_name = text(null=True)

    owner_may_read = ("consumable_resource_utilization_events",)

    class Meta:
        db_table = "resource_utilization_events"
        constraints = [
            models.CheckConstraint(name="resource_cluster_decimal", condition=Q(cluster_id__regex=CLUSTER_ID)),
            models.CheckConstraint(name="resource_mode_closed", condition=Q(source_mode__in=Mode.values)),
            models.CheckConstraint(
                name="resource_texts_not_empty",
                condition=not_empty("event_id", "tenant_name", "namespace", "resource_type"),
            ),
            models.CheckConstraint(
                name="resource_empty_is_null",
                condition=not_empty("organization_id", "robot_id", "cr_name", "pod_name", "container_name"),
            ),
            models.CheckConstraint(
                name="resource_utilization_level", condition=Q(utilization__gte=0, utilization__lte=MAX_LEVEL)
            ),
        ]
        indexes = [
            models.Index(name="resource_of_cluster", fields=["cluster_id", "occurred_at"]),
            BrinIndex(name="resource_by_receipt", fields=["received_at"], pages_per_range=16, autosummarize=True),
        ]
        triggers = append_only(name="resource", message="A stored event never changes.")
