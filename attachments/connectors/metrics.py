"""What processes count about connectors. `METRICS` is the public contract; no label holds a connector or any other id.

Every series is shown at zero from the start, so that the first thing counted is an increase that an alert can see.
"""

from enum import StrEnum
from functools import cache
from typing import cast

from prometheus_client import Counter

from attachments.connectors.authenticate import Reason
from outbox.metrics import Kind, Metric, made


class Answered(StrEnum):
    """How requests that showed a good signature, or none, were answered: the closed values of `outcome`."""

    ACCEPTED = "accepted"
    """200: the event was new."""
    REPLAYED = "replayed"
    """200: it was accepted before."""
    CONFLICTING = "conflicting"
    """409: its id stands for another payload."""
    EXCEEDED = "exceeded"
    """429: the tenant's quota leaves nothing."""
    REJECTED = "rejected"
    """401: `connectors_auth_failed_total` says why."""
    TOO_LARGE = "too_large"
    """413."""
    UNAVAILABLE = "unavailable"
    """503: a database, billing or a key was not there, so the provider sends it again."""


METRICS: tuple[Metric, ...] = (
    Metric("connectors_requests_total", Kind.COUNTER, ("outcome",), "Requests that delivered an event, by answer."),
    Metric("connectors_auth_failed_total", Kind.COUNTER, ("reason",), "Requests whose signature opened nothing."),
)

_METRICS = {metric.name: made(metric) for metric in METRICS}


@cache
def _counter(name: str, label: str) -> Counter:
    return cast(Counter, _METRICS[name]).labels(label)


for _outcome in Answered:
    _counter("connectors_requests_total", _outcome)
for _reason in Reason:
    _counter("connectors_auth_failed_total", _reason)


def answered(outcome: Answered) -> None:
    """A request was answered."""
    _counter("connectors_requests_total", outcome).inc()


def not_let_in(reason: Reason) -> None:
    """A request opened nothing."""
    _counter("connectors_auth_failed_total", reason).inc()
    answered(Answered.REJECTED)
