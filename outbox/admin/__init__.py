"""An operator's pages of one producer's outbox, registered in the section of every owner that has one.

They read through the section's alias and nothing else; they show receipts by their four-tuple, never by their body.
"""

from config.owners import producers
from config.readonly_admin import SECTIONS
from outbox.admin.attempts import AttemptAdmin, FailureAdmin
from outbox.admin.deliveries import DeliveryAdmin
from outbox.admin.delivery_sets import DeliverySetAdmin
from outbox.admin.events import EventAdmin
from outbox.admin.quarantine import QuarantineAdmin
from outbox.models import (
    DeliveryAttemptFinish,
    DeliveryAttemptStart,
    DeliverySetVersion,
    OutboxDelivery,
    OutboxEvent,
    OutboxQuarantine,
)

for owner in producers():
    section = SECTIONS[owner.name]
    section.register(OutboxEvent, EventAdmin)
    section.register(OutboxDelivery, DeliveryAdmin)
    section.register(DeliveryAttemptStart, AttemptAdmin)
    section.register(DeliveryAttemptFinish, FailureAdmin)
    section.register(OutboxQuarantine, QuarantineAdmin)
    section.register(DeliverySetVersion, DeliverySetAdmin)
