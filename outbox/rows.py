"""What the engine carries between claim, deliver and settle."""

from dataclasses import dataclass, field
from typing import NamedTuple

from outbox.contracts.ack import ActiveConsumerAck
from outbox.contracts.contract import ContentReference
from outbox.contracts.delivery import FrozenMember


class Claimed(NamedTuple):
    """One leased delivery with the event it carries. Attempt id and token are the fence of every later write."""

    event_id: str
    attempt_id: str
    lease_token: int
    attempt_count: int
    aggregate_id: str
    aggregate_revision: int
    envelope: bytes
    digest_algorithm_version: str
    envelope_sha256: str
    member: FrozenMember


class Ack(NamedTuple):
    """A verified acknowledgement."""

    claimed: Claimed
    ack: ActiveConsumerAck
    receipt: ContentReference


@dataclass(frozen=True, slots=True)
class Retry:
    """The delivery goes back to pending, available again after `delay` seconds."""

    claimed: Claimed
    retry_class: str
    code: str
    detail: str
    delay: float


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The delivery can not be applied. `retry_class` is set where retrying was exhausted."""

    claimed: Claimed
    code: str
    detail: str
    retry_class: str | None = None


@dataclass(slots=True)
class Settlement:
    """What one batch came to."""

    acks: list[Ack] = field(default_factory=list)
    retries: list[Retry] = field(default_factory=list)
    quarantines: list[Quarantine] = field(default_factory=list)

    def claimed(self) -> list[Claimed]:
        """Every delivery in it."""
        entries: list[Ack | Retry | Quarantine] = [*self.acks, *self.retries, *self.quarantines]
        return [entry.claimed for entry in entries]
