"""Whether an event is the next revision of its aggregate, one that waits, or one that was taken (O26)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from operations.projector.examine import Examined


@dataclass(slots=True)
class Course:
    """How one aggregate goes through a batch."""

    revision: int
    """The last applied revision: before the batch, and after `run` behind it."""
    applied: list[Examined] = field(default_factory=list)
    waiting: list[Examined] = field(default_factory=list)
    taken: list[Examined] = field(default_factory=list)


def course(events: Iterable[Examined], *, from_revision: int) -> Course:
    """Apply, in order, every event whose predecessors are applied; what else there is waits or is taken.

    A revision at or below the last applied one belongs to another event: had it been this one, its receipt would have
    answered before.
    """
    result = Course(revision=from_revision)
    for event in sorted(events, key=lambda event: event.request.aggregate_revision):
        revision = event.request.aggregate_revision
        if revision == result.revision + 1:
            result.revision = revision
            result.applied.append(event)
        elif revision > result.revision:
            result.waiting.append(event)
        else:
            result.taken.append(event)
    return result
