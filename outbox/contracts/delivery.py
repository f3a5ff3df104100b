"""What a dispatcher hands to a consumer, and the three answers there are (O20, O30)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from outbox.contracts.ack import ActiveConsumerAck
from outbox.contracts.contract import ContentReference


class RetryClass(StrEnum):
    """Why a delivery is tried again; each class has its own policy in the settings."""

    TRANSIENT = "transient"
    """Network, database or unknown failure."""
    CAPACITY = "capacity"
    """The consumer protects itself."""
    WAITING_PREDECESSOR = "waiting_predecessor"
    """An earlier revision of the same aggregate has not arrived. Never quarantined by attempts."""
    OWNER_UNREADABLE = "owner_unreadable"
    """A fact that the event names cannot be read at its owner yet."""


@dataclass(frozen=True, slots=True)
class FrozenMember:
    """The member of the event's own frozen definition. Expected values come from here, never from an answer."""

    definition: ContentReference
    event_type: str
    event_schema_version: str
    destination: str
    consumer_name: str
    expected_receipt_type: str
    expected_receipt_schema_version: str
    projection_name: str | None
    projection_version: str | None


class DeliveryRequest(NamedTuple):
    """One event for one destination: the exact stored bytes, their digest, and the frozen member."""

    event_id: str
    envelope: bytes
    digest_algorithm_version: str
    envelope_sha256: str
    aggregate_id: str
    aggregate_revision: int
    member: FrozenMember
    producer: str
    """The owner whose dispatcher delivers."""


class Acknowledged(NamedTuple):
    """The consumer committed. `receipt` is the canonical body that the ack's four-tuple names."""

    ack: ActiveConsumerAck
    receipt: bytes


@dataclass(frozen=True, slots=True)
class Retryable:
    """Nothing was committed that answers the event; try again by the policy of `retry_class`."""

    retry_class: RetryClass
    code: str
    detail: str = ""
    """For operators: sanitised and cut before it is stored."""


@dataclass(frozen=True, slots=True)
class NonRetryable:
    """The event can never be applied; it goes into quarantine."""

    code: str
    detail: str = ""


Verdict = Acknowledged | Retryable | NonRetryable
