"""Committed events: what was said, its digest, and where it was delivered."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from config.readonly_admin import Code, Document, Lines, Link, ReadOnlyAdmin, Reference, State, Table
from outbox.contracts.canonical import sha256_hex
from outbox.models import OutboxDelivery, OutboxEvent

NOT_LISTED = ("event_envelope",)
"""Long columns that no list shows."""


class EventAdmin(ReadOnlyAdmin):
    slug = "events"
    label = "Events"
    group = "Outbox"
    position = 10
    about = (
        "What this owner committed, newest first. An event is published once every mandatory delivery is acknowledged."
    )
    order = ("-event_id",)
    deferred = NOT_LISTED
    lookups = ("event_id", "aggregate_id")
    list_display = ("event_id", "event_type", "aggregate", "tenant", "created_at", "state")
    headings = {"created_at": "Committed", "occurred_at": "Occurred", "published_at": "Published"}
    fieldsets = (
        (
            "Event",
            {"fields": ("state", "event_type", "schema_version", "aggregate", "tenant", "workspace_id", "project_id")},
        ),
        ("Time", {"fields": ("occurred_at", "created_at", "published_at")}),
        ("Thread", {"fields": ("operation_id", "correlation_id", "causation_id")}),
        ("Envelope", {"fields": ("digest", "digest_algorithm", "digest_holds")}),
        ("Delivery set", {"fields": ("definition",)}),
    )

    @admin.display(description="aggregate")
    def aggregate(self, row: OutboxEvent) -> Any:
        return Lines(Code(row.aggregate_id), f"revision {row.aggregate_revision}")

    @admin.display(description="tenant")
    def tenant(self, row: OutboxEvent) -> Any:
        return Lines(Code(row.tenant_id), row.tenant_kind)

    @admin.display(description="state")
    def state(self, row: OutboxEvent) -> State:
        if row.published_at:
            return State("published", "published", "Every mandatory delivery is acknowledged.")
        return State("open", "open", "A mandatory delivery is not acknowledged yet.")

    @admin.display(description="SHA-256 of the canonical envelope")
    def digest(self, row: OutboxEvent) -> str:
        return row.event_envelope_sha256

    @admin.display(description="digest algorithm")
    def digest_algorithm(self, row: OutboxEvent) -> Code:
        return Code(row.event_envelope_digest_algorithm_version)

    @admin.display(description="recomputed now")
    def digest_holds(self, row: OutboxEvent) -> State:
        if sha256_hex(row.event_envelope.encode()) == row.event_envelope_sha256:
            return State("verified", "matches", "The SHA-256 of the stored text is the stored digest.")
        return State(
            "broken", "DIFFERS", "The SHA-256 of the stored text is not the stored digest. Run `manage.py verify`."
        )

    @admin.display(description="frozen definition")
    def definition(self, row: OutboxEvent) -> Reference:
        return Reference(
            row.delivery_set_version,
            row.delivery_set_definition_schema_version,
            row.delivery_set_definition_digest_algorithm_version,
            row.delivery_set_definition_digest,
        )

    def title_of(self, row: OutboxEvent) -> str:
        return f"Event {row.event_id}"

    def tables(self, row: OutboxEvent) -> list[Table]:
        pages = self.sibling(OutboxDelivery)
        deliveries = OutboxDelivery.objects.using(self.alias).filter(event_id=row.event_id).order_by("destination")
        cells = tuple(
            (
                Link(delivery.destination, pages.url_of(delivery)),
                *(
                    pages.cell(delivery, name)
                    for name in ("status", "mandatory", "attempt_count", "delivered_at", "error")
                ),
            )
            for delivery in deliveries
        )
        headings = ("Destination", "State", "Mandatory", "Attempts", "Acknowledged", "Last error")
        return [Table("Deliveries", headings, cells)]

    def beside_row(self, row: OutboxEvent, request: HttpRequest) -> dict[str, Any]:
        size = len(row.event_envelope.encode())
        return {
            "documents": [("Envelope", f"canonical, {size:,} bytes", Document(row.event_envelope), row.event_envelope)],
        }
