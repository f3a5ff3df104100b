"""What processes count about stored files. `METRICS` is the public contract; no label holds an id.

Every series is shown at zero from the start, so that the first thing counted is an increase that an alert can see.
"""

import time
from functools import cache
from typing import cast

from prometheus_client import Counter, Gauge

from outbox.metrics import Kind, Metric, made

ACTIONS = ("place", "remove")
ENDS = ("kept", "undone")
SOURCES = ("completion", "compensation", "successor", "sweep")
SWEPT = (*ENDS, "live", "failed")

METRICS: tuple[Metric, ...] = (
    Metric("files_staged_total", Kind.COUNTER, ("kind",), "Changes of the stored tree that were begun."),
    Metric("files_ended_total", Kind.COUNTER, ("outcome", "source"), "Changes that were ended, and by whom."),
    Metric(
        "files_not_ended_total",
        Kind.COUNTER,
        ("outcome",),
        "Attempts to end a change that failed; its backup is kept and the sweep tries again.",
    ),
    Metric("files_swept_total", Kind.COUNTER, ("outcome",), "Left changes that sweeps looked at."),
    Metric("files_incoming_removed_total", Kind.COUNTER, (), "Received files of dead processes that sweeps removed."),
    Metric(
        "files_last_sweep_timestamp_seconds",
        Kind.GAUGE,
        (),
        "When a sweep of the stored tree last came to its end, Unix time.",
        across="max",
    ),
)

_METRICS = {metric.name: made(metric) for metric in METRICS}


@cache
def _counter(name: str, *labels: str) -> Counter:
    counter = cast(Counter, _METRICS[name])
    return counter.labels(*labels) if labels else counter


for _kind in ACTIONS:
    _counter("files_staged_total", _kind)
for _outcome in ENDS:
    _counter("files_not_ended_total", _outcome)
for _outcome in SWEPT:
    _counter("files_swept_total", _outcome)


def staged(kind: str) -> None:
    """A change was begun; `kind` is one of `ACTIONS`."""
    _counter("files_staged_total", kind).inc()


def ended(*, outcome: str, source: str) -> None:
    """This process ended a change."""
    _counter("files_ended_total", outcome, source).inc()


def not_ended(outcome: str) -> None:
    """A change could not be ended as `outcome`, one of `ENDS`."""
    _counter("files_not_ended_total", outcome).inc()


def swept(outcome: str) -> None:
    """A sweep looked at one left change; `outcome` is one of `SWEPT`."""
    _counter("files_swept_total", outcome).inc()


def incoming_removed(number: int) -> None:
    """A sweep removed received files that nobody holds."""
    _counter("files_incoming_removed_total").inc(number)


def sweep_finished() -> None:
    """A sweep came to its end, whatever it found."""
    cast(Gauge, _METRICS["files_last_sweep_timestamp_seconds"]).set(time.time())
