"""Records that were dropped, by cluster, kind and reason."""

from typing import Any

from django.contrib import admin
from django.db import connections
from django.http import HttpRequest

from config.readonly_admin import Code, Link, ReadOnlyAdmin, State, Table
from metering.otlp.admin.of_cluster import cluster_filter, cluster_link
from metering.otlp.models import Drop

HOURS = 24
KINDS: list[tuple[str, str]] = Drop._meta.get_field("kind").flatchoices
REASONS = f"""
SELECT reason, kind, sum(dropped)::bigint, count(DISTINCT cluster_id), max(last_at)
  FROM telemetry_drops WHERE bucket >= now() - interval '{HOURS} hours'
 GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
"""


def reason_state(reason: str) -> State:
    """A reason as a cell."""
    return State("refused", reason, "The field that was missing or could not be stored.")


def kind_state(kind: str) -> State:
    """A kind as a cell."""
    label = dict(KINDS).get(kind, kind)
    return State(kind, label.partition(":")[0], label)


class DropAdmin(ReadOnlyAdmin):
    slug = "drops"
    label = "Drops"
    group = "Events"
    position = 84
    about = (
        "Records that were refused for themselves, counted per ten minutes; their senders were told. They are billed"
        " nowhere. The runbook page OtlpRecordsDropped says what to do."
    )
    order = ("-bucket", "-cluster_id", "-kind", "-reason")
    filters = (cluster_filter("-cluster_id", "-kind", "-reason", "-bucket"),)
    list_template = "operator/drops.html"
    list_display = ("bucket", "cluster", "why", "kind", "dropped", "last_event", "last_at")
    fieldsets = (("Drops", {"fields": ("bucket", "cluster", "why", "kind", "dropped", "last_event", "last_at")}),)
    headings = {"bucket": "Ten minutes from", "last_at": "Last"}

    @admin.display(description="cluster")
    def cluster(self, row: Drop) -> Link:
        return cluster_link(row.cluster_id)

    @admin.display(description="reason")
    def why(self, row: Drop) -> State:
        return reason_state(row.reason)

    @admin.display(description="last event id")
    def last_event(self, row: Drop) -> Code | None:
        return Code(row.last_event_id) if row.last_event_id else None

    def title_of(self, row: Drop) -> str:
        return f"Dropped for {row.reason}"

    def beside_list(self, request: HttpRequest) -> dict[str, Any]:
        with connections[self.alias].cursor() as cursor:
            cursor.execute(REASONS)
            rows = tuple(
                (reason_state(reason), kind_state(kind), dropped, clusters, last_at)
                for reason, kind, dropped, clusters, last_at in cursor.fetchall()
            )
        headings = ("Reason", "Kind", "Dropped", "Clusters", "Last")
        return {"reasons": Table(f"By reason, last {HOURS} hours", headings, rows, "Nothing was dropped.")}
