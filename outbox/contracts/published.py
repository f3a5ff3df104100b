"""What the outbox itself publishes beside the contracts of the owners."""

from outbox.contracts.ack import ActiveConsumerAck
from outbox.contracts.contract import Contract
from outbox.contracts.delivery_set import DeliverySetDefinition
from outbox.contracts.envelope import Envelope

PUBLISHED: tuple[type[Contract], ...] = (Envelope, DeliverySetDefinition, ActiveConsumerAck)
