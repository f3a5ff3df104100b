"""Something to look at, made by the real commands and the real engine: runs, deliveries, quarantine, money."""

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import transaction

from config.owners import owner_named
from outbox.append import Event, append_many
from outbox.contracts.contract import Contract
from outbox.contracts.delivery import DeliveryRequest, NonRetryable, Retryable, RetryClass, Verdict
from outbox.contracts.question import Question
from outbox.dispatch import Dispatcher, Drained
from outbox.transport import InProcess, Pass
from tests.outbox.make import admission, run_created

CORE = owner_named("core")
PATIENCE_SECONDS = 30
AT_ONCE = {name: {"base": 0, "factor": 1, "cap": 0, "quarantine_after": None} for name in settings.OUTBOX_RETRY}
"""The shortest retry delays there are, so that a test steps through attempts."""


@dataclass(frozen=True, slots=True)
class World:
    """Names of what was made."""

    quarantined: Event
    retried: Event
    pending: Event


@dataclass(slots=True)
class Door:
    """The real transport, unless `answer` has an answer of its own: what stands behind the door is an input here."""

    answer: Callable[[DeliveryRequest], Verdict | None]

    def deliver(self, requests: Sequence[DeliveryRequest], *, access: Pass) -> Sequence[Verdict]:
        own = {request.event_id: verdict for request in requests if (verdict := self.answer(request))}
        if own:
            busy = Retryable(RetryClass.CAPACITY, "busy", "Another event of the batch came first.")
            return [own.get(request.event_id) or busy for request in requests]
        return InProcess().deliver(requests, access=access)

    def ask(self, question: Question[Any, Any], *, expected: Contract, access: Pass) -> Any:
        return InProcess().ask(question, expected=expected, access=access)


def append(*events: Event) -> None:
    """Append and commit events of core."""
    with transaction.atomic(using=CORE.alias):
        append_many(events, using=CORE.alias)


def deliver(answer: Callable[[DeliveryRequest], Verdict | None] = lambda request: None) -> None:
    """Deliver one batch of what is due, or of what comes due within `PATIENCE_SECONDS`."""
    done, deadline = Drained(), time.monotonic() + PATIENCE_SECONDS
    with Dispatcher(CORE, deliver_through=Door(answer)) as dispatcher:
        while not done.claimed and time.monotonic() < deadline:
            dispatcher.one_batch("core_operations", done)
    assert done.claimed, "nothing came due"


def make_world(*, runs: int = 20) -> World:
    """Admitted and delivered runs, one event with three attempts, one in quarantine, one that waits.

    Needs `AT_ONCE` as `OUTBOX_RETRY`.
    """
    call_command("replay_trace", limit=runs, stdout=io.StringIO(), stderr=io.StringIO())
    deliver()
    broken = run_created(name="broken")
    append(broken)
    deliver(lambda request: NonRetryable("schema_unknown", "The payload has a field that version 2.0 does not know."))
    retried = run_created(name="retried")
    append(retried)
    deliver(lambda request: Retryable(RetryClass.TRANSIENT, "connection_reset", "The consumer closed the connection."))
    deliver(lambda request: Retryable(RetryClass.CAPACITY, "too_busy", "The consumer asks for patience."))
    deliver()
    waiting = admission("waiting")
    append(*waiting)
    return World(quarantined=broken, retried=retried, pending=waiting[0])
