"""Find events of one producer by an exact id: the event's own, or its aggregate's."""

import uuid

from outbox.admin.events import NOT_LISTED
from outbox.models import OutboxEvent

MOST = 20
"""Events of one aggregate that a search shows; the rest stands in the list of events."""


def find_events(alias: str, text: str) -> list[OutboxEvent]:
    """The event with this id, else the events of the aggregate with this id; one statement on one index."""
    events = OutboxEvent.objects.using(alias).defer(*NOT_LISTED)
    try:
        return list(events.filter(event_id=uuid.UUID(text)))
    except ValueError:
        return list(events.filter(aggregate_id=text).order_by("event_type", "aggregate_revision")[:MOST])
