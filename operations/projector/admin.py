"""The projector's own state: revision gaps, projection versions, and what each build has applied.

Receipts are not listed: a receipt is read by its exact four-tuple, and its coordinates stand at its delivery.
"""

from typing import Any

from django.contrib import admin
from django.db.models import Q

from config.readonly_admin import SECTIONS, Code, Filter, Option, ReadOnlyAdmin, State, Table
from operations.projector.models import ActiveProjection, GapState, ProjectionBuildRun, ProjectionVersion, RevisionGap


def _states(pages: ReadOnlyAdmin) -> list[Option]:
    return [
        Option(state.value, str(state.label).partition(":")[0], Q(state=state.value), ("detected_at", "id"))
        for state in GapState
    ]


class GapAdmin(ReadOnlyAdmin):
    slug = "gaps"
    label = "Revision gaps"
    group = "Operations"
    position = 3
    about = "Events that arrived before an earlier revision of their aggregate. They are retried until it has arrived."
    order = ("-id",)
    filters = (Filter("state", "State", _states),)
    list_display = (
        "aggregate",
        "producer",
        "state",
        "missing",
        "waiting_revision",
        "event_type",
        "detected_at",
        "resolved_at",
    )
    fieldsets = (
        ("Gap", {"fields": ("state", "missing", "waiting_revision", "detected_at", "resolved_at")}),
        ("Event", {"fields": ("producer", "aggregate_id", "event_id", "event_type")}),
        ("Projection", {"fields": ("projection_name", "projection_version")}),
    )

    @admin.display(description="aggregate")
    def aggregate(self, row: RevisionGap) -> Code:
        return Code(row.aggregate_id)

    @admin.display(description="missing")
    def missing(self, row: RevisionGap) -> str:
        last = row.waiting_revision - 1
        return f"revision {row.missing_from}" if row.missing_from == last else f"revisions {row.missing_from} to {last}"

    def title_of(self, row: RevisionGap) -> str:
        return f"Gap before revision {row.waiting_revision}"


class ProjectionAdmin(ReadOnlyAdmin):
    slug = "projections"
    label = "Projections"
    group = "Operations"
    position = 4
    about = "Versions of the projection. Readers see the active one."
    order = ("-projection_name", "-projection_version")
    list_display = ("projection_version", "projection_name", "registered_at")
    fieldsets = (("Projection", {"fields": ("projection_name", "projection_version", "registered_at")}),)

    def title_of(self, row: ProjectionVersion) -> str:
        return f"Projection {row.projection_name} {row.projection_version}"

    def tables(self, row: ProjectionVersion) -> list[Table]:
        active = ActiveProjection.objects.using(self.alias).filter(projection_name=row.projection_name)
        builds = ProjectionBuildRun.objects.using(self.alias).filter(
            projection_name=row.projection_name, projection_version=row.projection_version
        )
        pointer = tuple((_activity(one, row), one.projection_version, one.epoch, one.activated_at) for one in active)
        written = tuple(
            (one.writer, one.applied_events, one.runs, one.last_event_id, one.last_applied_at)
            for one in builds.order_by("writer")
        )
        return [
            Table("Active pointer", ("This version", "Active version", "Epoch", "Since"), pointer),
            Table("What was applied", ("Writer", "Events", "Transactions", "Last event", "Last applied"), written),
        ]


def _activity(pointer: ActiveProjection, row: ProjectionVersion) -> Any:
    if pointer.projection_version == row.projection_version:
        return State("active", "active", "Readers see this version.")
    return State("inactive", "not active", "Readers see another version.")


SECTIONS["core"].register(RevisionGap, GapAdmin)
SECTIONS["core"].register(ProjectionVersion, ProjectionAdmin)
