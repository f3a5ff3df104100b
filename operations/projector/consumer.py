"""`operations_projector`: applies events to the operations projection and answers with receipts (O20, O21, O26).

Each event gets its own verdict. A batch is one inbox transaction; if it cannot be committed as a whole it is repeated
in halves, down to single events, so one poison event costs a few more transactions and its neighbours nothing (D8).
Weakness: this consumer applies at least what it acknowledges; an answer that is lost is given again from the receipt.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import structlog
from django.db import InterfaceError, OperationalError, connections

from operations.projector.examine import Builds, Examined, Refusal, examine
from operations.projector.inbox import ALIAS, Overtaken, SourceConflict, Verdicts, apply
from operations.projector.issue_receipt import Build
from operations.projector.rules import RULES, Rule
from operations.timelines.project import OperationTaken
from outbox.contracts.delivery import DeliveryRequest, NonRetryable, Retryable, RetryClass, Verdict
from outbox.contracts.first_release import PROJECTION_NAME, PROJECTION_VERSION
from outbox.retry import classify

log = structlog.get_logger("operations.projector")

BUILDS: Builds = {(PROJECTION_NAME, PROJECTION_VERSION): Build(PROJECTION_NAME, PROJECTION_VERSION)}
"""What this release can build. A member that names anything else is refused."""


class Projector:
    """A consumer with its rules and builds. The production one is `consume`."""

    def __init__(self, *, rules: Mapping[tuple[str, str], Rule], builds: Builds) -> None:
        self.rules = rules
        self.builds = builds

    def consume(self, requests: Sequence[DeliveryRequest]) -> Sequence[Verdict]:
        """One verdict per request, in order. What is acknowledged is committed.

        Raises `OperationalError` or `InterfaceError` if the database is lost; events that were committed before that
        answer with their receipts when they come again.
        """
        verdicts: dict[int, Verdict] = {}
        groups: dict[object, list[tuple[int, Examined]]] = defaultdict(list)
        seen: Counter[str] = Counter()
        for index, request in enumerate(requests):
            examined = examine(request, rules=self.rules, builds=self.builds)
            if isinstance(examined, NonRetryable):
                verdicts[index] = examined
                continue
            # An event that stands twice in a batch is looked at again when the first is decided.
            turn = seen[request.event_id]
            seen[request.event_id] += 1
            groups[turn, request.producer, *_target(request)].append((index, examined))
        for group in groups.values():
            decided = apply_in_parts([examined for _, examined in group])
            for index, examined in group:
                verdicts[index] = decided[examined.request.event_id]
        return [verdicts[index] for index in range(len(requests))]


def _target(request: DeliveryRequest) -> tuple[str | None, ...]:
    member, definition = request.member, request.member.definition
    return (
        member.projection_name,
        member.projection_version,
        definition.ref,
        definition.schema_version,
        definition.digest_algorithm_version,
        definition.digest,
    )


def apply_in_parts(events: Sequence[Examined]) -> Verdicts:
    """Apply all events, or else each half by itself. Raises only if the database is lost."""
    try:
        return apply(events)
    except Exception as error:  # whatever one event provokes must not reach its neighbours
        if isinstance(error, OperationalError | InterfaceError) and not connections[ALIAS].is_usable():
            connections[ALIAS].close()
            raise
        log.warning("inbox_undone", events=len(events), error=type(error).__name__)
        if len(events) == 1:
            return {events[0].request.event_id: _alone(events[0], error)}
    middle = len(events) // 2
    return apply_in_parts(events[:middle]) | apply_in_parts(events[middle:])


def _alone(event: Examined, error: Exception) -> Verdict:
    if isinstance(error, SourceConflict):
        return NonRetryable(Refusal.EVENT_CONFLICT, str(error))
    if isinstance(error, OperationTaken):
        return NonRetryable(Refusal.OPERATION_CONFLICT, str(error))
    if isinstance(error, Overtaken):
        return Retryable(RetryClass.TRANSIENT, "overtaken", str(error))
    return Retryable(*classify(error))


PROJECTOR = Projector(rules=RULES, builds=BUILDS)
consume = PROJECTOR.consume
