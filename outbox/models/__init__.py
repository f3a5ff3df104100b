"""The tables of one producer's outbox."""

from outbox.models.attempt import DeliveryAttemptFinish, DeliveryAttemptStart, Disposition, Outcome
from outbox.models.delivery import TRANSITIONS, DeliveryStatus, OutboxDelivery
from outbox.models.delivery_set import DeliverySetEvent, DeliverySetMember, DeliverySetStatus, DeliverySetVersion
from outbox.models.event import OutboxEvent
from outbox.models.quarantine import OutboxQuarantine

__all__ = [
    "TRANSITIONS",
    "DeliveryAttemptFinish",
    "DeliveryAttemptStart",
    "DeliverySetEvent",
    "DeliverySetMember",
    "DeliverySetStatus",
    "DeliverySetVersion",
    "DeliveryStatus",
    "Disposition",
    "OutboxDelivery",
    "OutboxEvent",
    "OutboxQuarantine",
    "Outcome",
]
