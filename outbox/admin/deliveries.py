"""Where each event stands at each destination, and the history of its attempts."""

from collections.abc import Sequence
from typing import Any, cast

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from config.owners import consumer_for, owner_of_alias
from config.readonly_admin import Code, Filter, Lines, Link, Option, ReadOnlyAdmin, Reference, State, Table
from outbox.admin.attempts import HISTORY, AttemptAdmin
from outbox.models import DeliveryAttemptStart, DeliverySetMember, DeliveryStatus, OutboxDelivery, OutboxEvent

AWAITING = State(
    "awaiting-consumer", "awaiting consumer", "No consumer is bound to this destination, so it is not claimed."
)


def is_bound(destination: str) -> bool:
    """Whether a consumer is bound to the destination; without one it is not claimed (O19)."""
    found = consumer_for(destination)
    return found is not None and found[1].handler is not None


def queues(pages: ReadOnlyAdmin) -> Sequence[Option]:
    """Pending and leased, per destination: the choices that the two partial indexes serve, in their order."""
    members = DeliverySetMember.objects.using(pages.alias).filter(event_type__in=owner_of_alias(pages.alias).events)
    options = []
    for destination in members.values_list("destination", flat=True).distinct().order_by("destination"):
        options.append(
            Option(
                f"pending~{destination}",
                f"pending to {destination}",
                Q(status=DeliveryStatus.PENDING, destination=destination),
                ("available_at", "created_at", "event_id"),
            )
        )
        options.append(
            Option(
                f"leased~{destination}",
                f"leased to {destination}",
                Q(status=DeliveryStatus.LEASED, destination=destination),
                ("lease_expires_at", "event_id"),
            )
        )
    return options


class DeliveryAdmin(ReadOnlyAdmin):
    slug = "deliveries"
    label = "Deliveries"
    group = "Outbox"
    position = 20
    about = (
        "One row per event and destination, newest events first; a queue shows its oldest first, as workers take it."
    )
    order = ("-event_id", "-destination")
    lookups = ("event_id",)
    filters = (Filter("queue", "Queue", queues),)
    tables_first = True
    list_display = ("event_id", "what", "status", "attempt_count", "created_at", "next_step", "error")
    headings = {
        "attempt_count": "Attempts", "created_at": "Created", "last_attempt_at": "Last attempt",
        "delivered_at": "Acknowledged", "status": "State", "lease_owner": "Worker", "lease_token": "Fencing token",
        "last_error_code": "Code", "last_error_ref": "Sanitised error", "current_attempt_id": "Current attempt",
    }  # fmt: skip
    fieldsets = (
        ("State", {"fields": (
            "status", "created_at", "next_step", "attempt_count", "last_attempt_at", "delivered_at",
        )}),
        ("Lease", {"fields": ("lease_owner", "lease_expires_at", "lease_token", "current_attempt_id")}),
        ("Last error", {"fields": ("last_error_code", "last_error_ref")}),
        ("Frozen from the definition", {"fields": (
            "event", "event_type", "schema_version", "destination", "consumer_name", "mandatory",
            "delivery_set_version", "expected_receipt", "projection",
        )}),
        ("Acknowledgement", {"fields": ("receipt_type", "receipt", "acknowledged_envelope")}),
    )  # fmt: skip

    @admin.display(description="what")
    def what(self, row: OutboxDelivery) -> Lines:
        return Lines(Code(row.event_type), f"to {row.destination}")

    @admin.display(description="next step")
    def next_step(self, row: OutboxDelivery) -> Any:
        if row.status == DeliveryStatus.PENDING:
            if not is_bound(row.destination):
                return AWAITING
            return "due now" if row.available_at <= timezone.now() else Lines("tried again", row.available_at)
        if row.status == DeliveryStatus.LEASED:
            return Lines("lease ends", row.lease_expires_at)
        return None

    @admin.display(description="last error")
    def error(self, row: OutboxDelivery) -> Any:
        return Code(row.last_error_code) if row.last_error_code else None

    @admin.display(description="event")
    def event(self, row: OutboxDelivery) -> Link:
        return Link(row.event_id, self.sibling(OutboxEvent).url_of_key(row.event_id))

    @admin.display(description="expected receipt")
    def expected_receipt(self, row: OutboxDelivery) -> Code:
        return Code(f"{row.expected_receipt_type}@{row.expected_receipt_schema_version}")

    @admin.display(description="required projection")
    def projection(self, row: OutboxDelivery) -> Any:
        if row.required_projection_name is None:
            return "not applicable"
        return Code(f"{row.required_projection_name} {row.required_projection_version}")

    @admin.display(description="receipt type")
    def receipt_type(self, row: OutboxDelivery) -> Any:
        return Code(row.ack_receipt_type) if row.ack_receipt_type else None

    @admin.display(description="receipt")
    def receipt(self, row: OutboxDelivery) -> Reference | None:
        if row.ack_receipt_ref is None:
            return None
        return Reference(
            row.ack_receipt_ref,
            row.ack_receipt_schema_version or "",
            row.ack_receipt_digest_algorithm_version or "",
            row.ack_receipt_digest or "",
        )

    @admin.display(description="envelope digest in the ack")
    def acknowledged_envelope(self, row: OutboxDelivery) -> str | None:
        return row.ack_event_envelope_sha256

    def title_of(self, row: OutboxDelivery) -> str:
        return f"Delivery to {row.destination}"

    def tables(self, row: OutboxDelivery) -> list[Table]:
        pages = cast(AttemptAdmin, self.sibling(DeliveryAttemptStart))
        attempts = (
            DeliveryAttemptStart.objects.using(self.alias)
            .filter(event_id=row.event_id, destination=row.destination)
            .select_related("finish")
            .order_by("lease_token")[: HISTORY + 1]
        )
        return [pages.history(list(attempts), total=row.attempt_count)]

    def beside_row(self, row: OutboxDelivery, request: HttpRequest) -> dict[str, Any]:
        waits = row.status == DeliveryStatus.PENDING and not is_bound(row.destination)
        return {"subtitle": row.event_id, "notice": AWAITING.meaning if waits else ""}
