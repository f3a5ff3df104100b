"""Registered delivery-set definitions, with their events and members."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from config.readonly_admin import Code, Document, ReadOnlyAdmin, Reference, Table
from outbox.models import DeliverySetEvent, DeliverySetMember, DeliverySetVersion


class DeliverySetAdmin(ReadOnlyAdmin):
    slug = "delivery-sets"
    label = "Delivery sets"
    group = "Outbox"
    position = 60
    about = "Which event goes where. New events freeze the active definition; a registered one never changes."
    order = ("-delivery_set_version",)
    deferred = ("definition",)
    list_display = ("delivery_set_version", "status", "digest", "source_release", "registered_at", "activated_at")
    fieldsets = (
        ("State", {"fields": ("status", "registered_at", "activated_at", "source_release")}),
        ("Definition", {"fields": ("reference",)}),
    )

    @admin.display(description="digest")
    def digest(self, row: DeliverySetVersion) -> Code:
        return Code(row.delivery_set_definition_digest, short=True)

    @admin.display(description="four-tuple")
    def reference(self, row: DeliverySetVersion) -> Reference:
        return Reference(
            row.delivery_set_version,
            row.delivery_set_definition_schema_version,
            row.delivery_set_definition_digest_algorithm_version,
            row.delivery_set_definition_digest,
        )

    def title_of(self, row: DeliverySetVersion) -> str:
        return f"Delivery set {row.delivery_set_version}"

    def tables(self, row: DeliverySetVersion) -> list[Table]:
        version = row.delivery_set_version
        members = DeliverySetMember.objects.using(self.alias).filter(delivery_set_version=version)
        events = DeliverySetEvent.objects.using(self.alias).filter(delivery_set_version=version)
        return [
            Table(
                "Members",
                ("Event type", "Version", "Destination", "Consumer", "Mandatory", "Expected receipt", "Projection"),
                tuple(_member(m) for m in members.order_by("event_type", "schema_version", "destination")),
            ),
            Table(
                "Events",
                ("Event type", "Version"),
                tuple((Code(e.event_type), e.schema_version) for e in events.order_by("event_type", "schema_version")),
            ),
        ]

    def beside_row(self, row: DeliverySetVersion, request: HttpRequest) -> dict[str, Any]:
        size = len(row.definition.encode())
        return {"documents": [("Definition", f"canonical, {size:,} bytes", Document(row.definition), row.definition)]}


def _member(member: DeliverySetMember) -> tuple[Any, ...]:
    projection = f"{member.projection_name} {member.projection_version}" if member.projection_name else None
    return (
        Code(member.event_type),
        member.schema_version,
        member.destination,
        Code(member.consumer_name),
        member.mandatory,
        Code(f"{member.expected_receipt_type}@{member.expected_receipt_schema_version}"),
        Code(projection) if projection else "not applicable",
    )
