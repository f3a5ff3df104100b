"""The state of each event at each destination, guarded as a closed state machine (O3, O4, O19)."""

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from outbox.guards import NEW_ROWS, Guard, is_sha256, never_delete, refusal, refuse_when
from outbox.models.event import OutboxEvent


class DeliveryStatus(models.TextChoices):
    """The closed four states (O4). `TRANSITIONS` says how they follow each other."""

    PENDING = "pending", "Pending: waits for its time and a worker"
    LEASED = "leased", "Leased: one worker holds it until the lease expires"
    ACKNOWLEDGED = "acknowledged", "Acknowledged: the consumer's receipt was verified; terminal"
    QUARANTINED = "quarantined", "Quarantined: can not be applied, visible to operators; terminal"


TRANSITIONS: dict[DeliveryStatus, dict[DeliveryStatus, str]] = {
    DeliveryStatus.PENDING: {DeliveryStatus.LEASED: "claim"},
    DeliveryStatus.LEASED: {
        DeliveryStatus.LEASED: "renew, or recover an expired lease and claim again",
        DeliveryStatus.PENDING: "retry",
        DeliveryStatus.ACKNOWLEDGED: "acknowledge",
        DeliveryStatus.QUARANTINED: "quarantine",
    },
    DeliveryStatus.ACKNOWLEDGED: {},
    DeliveryStatus.QUARANTINED: {},
}

FROZEN = (
    "event_id",
    "destination",
    "delivery_set_version",
    "event_type",
    "schema_version",
    "consumer_name",
    "expected_receipt_type",
    "expected_receipt_schema_version",
    "required_projection_name",
    "required_projection_version",
    "mandatory",
    "created_at",
)
MUTABLE = (
    "status",
    "available_at",
    "lease_owner",
    "lease_token",
    "lease_expires_at",
    "current_attempt_id",
    "attempt_count",
    "last_attempt_at",
    "delivered_at",
    "last_error_code",
    "last_error_ref",
    "ack_consumer_name",
    "ack_receipt_type",
    "ack_receipt_ref",
    "ack_receipt_schema_version",
    "ack_receipt_digest_algorithm_version",
    "ack_receipt_digest",
    "ack_event_envelope_digest_algorithm_version",
    "ack_event_envelope_sha256",
)
ACK = tuple(column for column in MUTABLE if column.startswith("ack_"))

SAME_ATTEMPT = (
    "NEW.lease_token = OLD.lease_token AND NEW.attempt_count = OLD.attempt_count"
    " AND NEW.current_attempt_id = OLD.current_attempt_id"
)
NEXT_ATTEMPT = (
    "NEW.lease_token = OLD.lease_token + 1 AND NEW.attempt_count = OLD.attempt_count + 1"
    " AND NEW.current_attempt_id IS DISTINCT FROM OLD.current_attempt_id"
)
LEGAL = f"""
    (OLD.status = 'pending' AND NEW.status = 'leased' AND OLD.available_at <= now() AND {NEXT_ATTEMPT})
    OR (OLD.status = 'leased' AND NEW.status IN ('pending', 'acknowledged', 'quarantined') AND {SAME_ATTEMPT})
    OR (OLD.status = 'leased' AND NEW.status = 'leased' AND {SAME_ATTEMPT}
        AND NEW.lease_owner = OLD.lease_owner AND NEW.lease_expires_at >= OLD.lease_expires_at)
    OR (OLD.status = 'leased' AND NEW.status = 'leased' AND {NEXT_ATTEMPT} AND OLD.lease_expires_at <= now())
"""


def _all_null(columns: tuple[str, ...]) -> Q:
    return Q(**dict.fromkeys(columns))


def _none_null(columns: tuple[str, ...]) -> Q:
    return Q(**{f"{column}__isnull": False for column in columns})


class OutboxDelivery(models.Model):
    """One event at one destination: what its definition froze, and where its delivery stands."""

    pk = models.CompositePrimaryKey("event_id", "destination")
    event = models.ForeignKey(OutboxEvent, on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    destination = models.TextField()
    delivery_set_version = models.TextField()
    event_type = models.TextField()
    schema_version = models.TextField()
    consumer_name = models.TextField()
    expected_receipt_type = models.TextField()
    expected_receipt_schema_version = models.TextField()
    required_projection_name = models.TextField(null=True)
    required_projection_version = models.TextField(null=True)
    mandatory = models.BooleanField()
    created_at = models.DateTimeField(db_default=Now())

    status = models.TextField(choices=DeliveryStatus, db_default=DeliveryStatus.PENDING)
    available_at = models.DateTimeField(db_default=Now())
    lease_owner = models.TextField(null=True)
    lease_token = models.BigIntegerField(db_default=0, help_text="Fencing token of this row; one more at each claim.")
    lease_expires_at = models.DateTimeField(null=True)
    current_attempt_id = models.UUIDField(null=True)
    attempt_count = models.IntegerField(db_default=0)
    last_attempt_at = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    last_error_code = models.TextField(null=True)
    last_error_ref = models.TextField(null=True)
    ack_consumer_name = models.TextField(null=True)
    ack_receipt_type = models.TextField(null=True)
    ack_receipt_ref = models.TextField(null=True)
    ack_receipt_schema_version = models.TextField(null=True)
    ack_receipt_digest_algorithm_version = models.TextField(null=True)
    ack_receipt_digest = models.TextField(null=True)
    ack_event_envelope_digest_algorithm_version = models.TextField(null=True)
    ack_event_envelope_sha256 = models.TextField(null=True)

    dispatch_may_select = True
    dispatch_may_update = MUTABLE

    class Meta:
        db_table = "outbox_deliveries"
        verbose_name = "delivery"
        verbose_name_plural = "deliveries"
        constraints = [
            models.CheckConstraint(name="outbox_delivery_status_closed", condition=Q(status__in=DeliveryStatus.values)),
            models.CheckConstraint(
                name="outbox_delivery_lease_shape",
                condition=Q(status="leased", lease_owner__isnull=False, lease_expires_at__isnull=False)
                & Q(current_attempt_id__isnull=False)
                | ~Q(status="leased") & _all_null(("lease_owner", "lease_expires_at")),
            ),
            models.CheckConstraint(
                name="outbox_delivery_ack_shape",
                condition=Q(status="acknowledged", delivered_at__isnull=False) & _none_null(ACK)
                | ~Q(status="acknowledged") & _all_null((*ACK, "delivered_at")),
            ),
            models.CheckConstraint(
                name="outbox_delivery_ack_is_expected",
                condition=Q(ack_consumer_name=None)
                | Q(
                    ack_consumer_name=F("consumer_name"),
                    ack_receipt_type=F("expected_receipt_type"),
                    ack_receipt_schema_version=F("expected_receipt_schema_version"),
                ),
            ),
            models.CheckConstraint(
                name="outbox_delivery_ack_digests",
                condition=Q(ack_receipt_digest=None)
                | is_sha256("ack_receipt_digest") & is_sha256("ack_event_envelope_sha256"),
            ),
            models.CheckConstraint(
                name="outbox_delivery_counts", condition=Q(attempt_count__gte=0, lease_token__gte=F("attempt_count"))
            ),
        ]
        indexes = [
            models.Index(
                name="outbox_delivery_pending",
                fields=["destination", "available_at", "created_at", "event_id"],
                condition=Q(status="pending"),
            ),
            models.Index(
                name="outbox_delivery_leased", fields=["destination", "lease_expires_at"], condition=Q(status="leased")
            ),
        ]
        triggers = [
            Guard(
                name="outbox_delivery_member",
                level=pgtrigger.Statement,
                when=pgtrigger.After,
                operation=pgtrigger.Insert,
                referencing=NEW_ROWS,
                func=f"""
                    IF EXISTS (
                        SELECT FROM new_rows n
                        LEFT JOIN public.outbox_events e
                          ON e.event_id = n.event_id AND e.delivery_set_version = n.delivery_set_version
                         AND e.event_type = n.event_type AND e.schema_version = n.schema_version
                        LEFT JOIN public.delivery_set_members m
                          ON m.delivery_set_version = n.delivery_set_version AND m.event_type = n.event_type
                         AND m.schema_version = n.schema_version AND m.destination = n.destination
                         AND m.consumer_name = n.consumer_name AND m.mandatory = n.mandatory
                         AND m.expected_receipt_type = n.expected_receipt_type
                         AND m.expected_receipt_schema_version = n.expected_receipt_schema_version
                         AND m.projection_name IS NOT DISTINCT FROM n.required_projection_name
                         AND m.projection_version IS NOT DISTINCT FROM n.required_projection_version
                        WHERE e.event_id IS NULL OR m.destination IS NULL OR n.status <> 'pending'
                           OR n.lease_token <> 0 OR n.attempt_count <> 0
                    ) THEN
                        {refusal("outbox_delivery_member", "A delivery starts as a copy of its member.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
            refuse_when(
                name="outbox_delivery_frozen",
                operation=pgtrigger.Update,
                condition=" OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in FROZEN),
                message="What a delivery froze from its definition never changes.",
            ),
            refuse_when(
                name="outbox_delivery_transition",
                operation=pgtrigger.Update,
                condition=f"({LEGAL}) IS NOT TRUE",
                message="This is no legal step of a delivery, or it belongs to another attempt.",
            ),
            Guard(
                name="outbox_delivery_quarantine_visible",
                when=pgtrigger.After,
                operation=pgtrigger.Update,
                timing=pgtrigger.Deferred,
                condition=pgtrigger.Condition("(NEW.status = 'quarantined')"),
                func=f"""
                    IF NOT EXISTS (SELECT FROM public.outbox_quarantine q
                                    WHERE q.event_id = NEW.event_id AND q.destination = NEW.destination) THEN
                        {refusal("outbox_delivery_quarantine_visible", "It has no quarantine row.")}
                    END IF;
                    RETURN NULL;
                """,
            ),
            *never_delete(name="outbox_delivery", message="Deliveries leave only through the retention procedure."),
        ]
