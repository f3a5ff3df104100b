"""What processes count about quota. `METRICS` is the public contract; no label holds a tenant or any other id.

Every series is shown at zero from the start, so that the first thing counted is an increase that an alert can see.
"""

import time
from functools import cache
from typing import cast

from prometheus_client import Counter, Gauge

from config.owners import with_markers
from outbox.metrics import Kind, Metric, made

DECISIONS = (
    "reserved",
    "reopened",
    "repeated",
    "settled",
    "unmetered",
    "exceeded",
    "conflicting",
    "wrong_basis",
    "wrong_key",
    "unknown_cost",
    "unavailable",
)
ENDS = ("settled", "released")
PHASES = ("completion", "compensation")
SWEPT = (*ENDS, "live", "failed")

METRICS: tuple[Metric, ...] = (
    Metric("commercial_decisions_total", Kind.COUNTER, ("outcome",), "Answers to business code that asked for quota."),
    Metric("commercial_ended_total", Kind.COUNTER, ("outcome", "source"), "Reservations ended, and by whom."),
    Metric(
        "commercial_callbacks_failed_total",
        Kind.COUNTER,
        ("phase",),
        "Completions and compensations that raised; what they left is recovered later.",
    ),
    Metric(
        "commercial_outcomes_unknown_total",
        Kind.COUNTER,
        (),
        "Business transactions whose answer to COMMIT was lost, and nobody could be asked.",
    ),
    Metric(
        "commercial_contradictions_total",
        Kind.COUNTER,
        (),
        "Attempts to end a reservation otherwise than it had ended: facts that disagree.",
    ),
    Metric("commercial_swept_total", Kind.COUNTER, ("business", "outcome"), "Left reservations that sweeps looked at."),
    Metric(
        "commercial_last_sweep_timestamp_seconds",
        Kind.GAUGE,
        ("business",),
        "When a sweep last came to its end, Unix time.",
        across="max",
    ),
)
SOURCES = ("completion", "compensation", "caller", "sweep")
"""`source` of `commercial_ended_total`."""

_METRICS = {metric.name: made(metric) for metric in METRICS}


@cache
def _counter(name: str, *labels: str) -> Counter:
    counter = cast(Counter, _METRICS[name])
    return counter.labels(*labels) if labels else counter


for _outcome in DECISIONS:
    _counter("commercial_decisions_total", _outcome)
for _phase in PHASES:
    _counter("commercial_callbacks_failed_total", _phase)
for _owner in with_markers():
    for _outcome in SWEPT:
        _counter("commercial_swept_total", _owner.name, _outcome)


def decided(outcome: str) -> None:
    """Business code was answered; `outcome` is one of `DECISIONS`."""
    _counter("commercial_decisions_total", outcome).inc()


def ended(*, outcome: str, source: str) -> None:
    """A reservation ended by this process."""
    _counter("commercial_ended_total", outcome, source).inc()


def callback_failed(phase: str) -> None:
    """A completion or compensation raised; `phase` is one of `PHASES`."""
    _counter("commercial_callbacks_failed_total", phase).inc()


def outcome_unknown() -> None:
    """Nobody could say how a business transaction ended."""
    _counter("commercial_outcomes_unknown_total").inc()


def contradicted() -> None:
    """A reservation had ended otherwise than its marker says."""
    _counter("commercial_contradictions_total").inc()


def swept(*, business: str, outcome: str) -> None:
    """A sweep looked at one left reservation; `outcome` is one of `SWEPT`."""
    _counter("commercial_swept_total", business, outcome).inc()


def sweep_finished(*, business: str) -> None:
    """A sweep came to its end, whatever it found."""
    cast(Gauge, _METRICS["commercial_last_sweep_timestamp_seconds"]).labels(business).set(time.time())
