"""What one settled batch says about its consumer: verdicts, and how late they came."""

import time
import uuid
from collections import Counter

from outbox import metrics
from outbox.rows import Settlement

MILLISECONDS_OF_UUID7 = 80
"""The bits below the creation time in a UUIDv7."""


def judged(settlement: Settlement) -> None:
    """Count the verdicts of a batch by consumer, and the delay of its oldest acknowledged event."""
    verdicts = Counter(
        (entry.claimed.member.consumer_name, outcome)
        for outcome, entries in (
            ("acknowledged", settlement.acks),
            ("retryable", settlement.retries),
            ("non_retryable", settlement.quarantines),
        )
        for entry in entries
    )
    for (consumer, outcome), count in verdicts.items():
        metrics.consumer_applied(consumer, outcome, count)
    if settlement.acks:
        oldest = min(settlement.acks, key=lambda ack: ack.claimed.event_id)
        created = (uuid.UUID(oldest.claimed.event_id).int >> MILLISECONDS_OF_UUID7) / 1000
        metrics.apply_delay(oldest.claimed.member.consumer_name, time.time() - created)
