"""The stored events. An id is found through `EventIdentity`, as the key's own index is ordered by time."""

from typing import Any

from django.contrib import admin
from django.db.models import Q

from config.readonly_admin import Code, Lines, Link, ReadOnlyAdmin, State, Table
from metering.clusters.models import Mode
from metering.otlp.admin.of_cluster import cluster_filter, cluster_link
from metering.otlp.fields import Kind
from metering.otlp.models import (
    Conflict,
    ConflictReason,
    EventIdentity,
    LlmBillingEvent,
    ResourceUtilizationEvent,
)

CONFLICTS = 20
"""Contradictions that the page of an event shows."""
LATE = "An id is found within a minute of its receipt."


class EventAdmin(ReadOnlyAdmin):
    """What the pages of both kinds share."""

    kind: Kind
    group = "Events"
    key = ("event_id", "occurred_at")
    order = ("-occurred_at", "-event_id")
    lookups = ("event_id",)
    filters = (cluster_filter("-occurred_at", "-event_id"),)
    headings = {
        "event_id": "Event",
        "occurred_at": "Occurred",
        "received_at": "Received",
        "cr_name": "CR name",
        "k8s_pod_uid": "k8s.pod.uid",
    }

    def exactly(self, text: str) -> Q:
        """The rows with this event id: those of its known times."""
        known = EventIdentity.objects.using(self.alias).filter(event_id=text, kind=self.kind)
        other = Conflict.objects.using(self.alias).filter(
            event_id=text, kind=self.kind, reason=ConflictReason.TWO_TIMES
        )
        times = [*known.values_list("occurred_at", flat=True), *other.values_list("occurred_at", flat=True)]
        return Q(event_id=text, occurred_at__in=times) if times else Q(pk__in=[])

    @admin.display(description="cluster")
    def cluster(self, row: Any) -> Link:
        return cluster_link(row.cluster_id)

    @admin.display(description="tenant")
    def tenant(self, row: Any) -> Lines:
        return Lines(row.tenant_name, row.namespace)

    @admin.display(description="mode of its token")
    def mode(self, row: Any) -> State:
        label = str(Mode(row.source_mode).label)
        return State(row.source_mode, label.partition(":")[0], label)

    @admin.display(description="organisation")
    def organization(self, row: Any) -> Code | None:
        return Code(row.organization_id) if row.organization_id else None

    @admin.display(description="robot")
    def robot(self, row: Any) -> Code | None:
        return Code(row.robot_id) if row.robot_id else None

    def title_of(self, row: Any) -> str:
        return f"Event {row.event_id}"

    def tables(self, row: Any) -> list[Table]:
        pages = self.sibling(Conflict)
        found = Conflict.objects.using(self.alias).filter(event_id=row.event_id, kind=self.kind).order_by("occurred_at")
        return [pages.table(list(found[:CONFLICTS]), title="What contradicts it", empty="Nothing contradicts it.")]


class LlmBillingEventAdmin(EventAdmin):
    kind = Kind.LLM_BILLING
    slug = "llm-events"
    label = "LLM calls"
    position = 81
    about = f"One row per call of a model, the latest first, as it was received. {LATE}"
    list_display = (
        "event_id",
        "cluster",
        "occurred_at",
        "model_and_provider",
        "tokens",
        "payer",
        "tenant",
        "received_at",
    )
    fieldsets = (
        ("Event", {"fields": ("occurred_at", "received_at", "cluster", "mode")}),
        ("Usage", {"fields": (
            "model_name", "provider", "prompt_tokens", "completion_tokens", "cached_input_tokens",
        )}),
        ("Whose", {"fields": (
            "manager_key", "organization", "tenant_name", "namespace", "robot", "cr_name", "k8s_pod_uid",
        )}),
    )  # fmt: skip

    @admin.display(description="model")
    def model_and_provider(self, row: LlmBillingEvent) -> Lines:
        return Lines(row.model_name, row.provider)

    @admin.display(description="prompt + completion")
    def tokens(self, row: LlmBillingEvent) -> list[Any]:
        return [row.prompt_tokens, "+", row.completion_tokens]

    @admin.display(description="charged by")
    def payer(self, row: LlmBillingEvent) -> Lines | None:
        if row.source_mode == Mode.GATEWAY and row.manager_key_id:
            return Lines(Code(row.manager_key_id), "managed key")
        return Lines(Code(row.organization_id), "organisation") if row.organization_id else None

    @admin.display(description="managed key")
    def manager_key(self, row: LlmBillingEvent) -> Code | None:
        return Code(row.manager_key_id) if row.manager_key_id else None


class ResourceUtilizationEventAdmin(EventAdmin):
    kind = Kind.RESOURCE_UTILIZATION
    slug = "resource-events"
    label = "Resource samples"
    position = 82
    about = f"One row per sample of a container's resource, the latest first, as it was received. {LATE}"
    list_display = ("event_id", "cluster", "occurred_at", "resource", "where", "tenant", "received_at")
    fieldsets = (
        ("Event", {"fields": ("occurred_at", "received_at", "cluster", "mode")}),
        ("Sample", {"fields": ("resource_type", "level", "above_threshold", "pod_name", "container_name")}),
        ("Whose", {"fields": ("organization", "tenant_name", "namespace", "robot", "cr_name")}),
    )

    @admin.display(description="resource")
    def resource(self, row: ResourceUtilizationEvent) -> Lines:
        above = ", above its threshold" if row.above_threshold else ""
        return Lines(row.resource_type, f"{row.utilization:g}{above}")

    @admin.display(description="utilization")
    def level(self, row: ResourceUtilizationEvent) -> str:
        return repr(row.utilization)

    @admin.display(description="container")
    def where(self, row: ResourceUtilizationEvent) -> Lines | None:
        return Lines(row.pod_name, row.container_name or "") if row.pod_name else None
