"""The engine counts what it does: one admission, appended, delivered, published."""

import pytest
from django.db import transaction
from prometheus_client import REGISTRY

from config.owners import owner_named
from outbox.append import append_many
from outbox.dispatch import Dispatcher
from outbox.nudge import nudge, take_up
from tests.outbox.make import admission

ROUTE = {"producer": "core", "destination": "core_operations"}
CONSUMER = {"consumer": "operations_projector"}
EXPECTED = (
    ("outbox_claimed_total", ROUTE, 4),
    ("outbox_acknowledged_total", ROUTE, 4),
    ("outbox_published_total", {"producer": "core", "verdict": "complete"}, 4),
    ("outbox_consumer_applied_total", {**CONSUMER, "outcome": "acknowledged"}, 4),
    ("outbox_apply_delay_seconds_count", CONSUMER, 1),
    ("outbox_rounds_total", {"producer": "core", "outcome": "ok"}, 1),
    ("outbox_batch_seconds_count", {**ROUTE, "phase": "deliver"}, 1),
    ("outbox_batch_seconds_count", {**ROUTE, "phase": "settle"}, 1),
)


def value(name: str, labels: dict[str, str]) -> float:
    """The present value of one series of this process."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.mark.spec("O33")
def test_one_round_is_counted_in_every_phase(database: None) -> None:
    with transaction.atomic(using="default"):
        append_many([*admission(), *admission()], using="default")
    before = [value(name, labels) for name, labels, _ in EXPECTED]
    fenced = value("outbox_fenced_total", ROUTE)
    with Dispatcher(owner_named("core")) as dispatcher:
        dispatcher.drain()
    assert [value(name, labels) - earlier for (name, labels, _), earlier in zip(EXPECTED, before, strict=True)] == [
        count for _, _, count in EXPECTED
    ]
    assert value("outbox_last_round_timestamp_seconds", {"producer": "core"}) > 0
    assert value("outbox_fenced_total", ROUTE) == fenced


@pytest.mark.spec("O33")
def test_wake_ups_are_counted_as_sent_and_coalesced(database: None) -> None:
    take_up("core")
    before = [value("outbox_nudges_total", {"owner": "core", "outcome": outcome}) for outcome in ("sent", "coalesced")]
    assert (nudge("core"), nudge("core"), nudge("core")) == (True, False, False)
    after = [value("outbox_nudges_total", {"owner": "core", "outcome": outcome}) for outcome in ("sent", "coalesced")]
    assert [now - earlier for now, earlier in zip(after, before, strict=True)] == [1, 2]
    take_up("core")
