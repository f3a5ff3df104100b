"""What a process counts about its own work (O33). `METRICS` is the public contract: names, types, labels, meaning.

The functions are what the engine calls, once per batch and never per row of it. No label holds a tenant, run, event,
trace or any other id; a label whose values come from outside (`code`, `reason`, `outcome`) is cut to a short list.

Counters live in one file per process where `PROMETHEUS_MULTIPROC_DIR` is set, so any process of the machine can answer
a scrape for all of them (`config.metrics`); without it they live in the process alone. They say what was done, never
what is: backlog, age and quarantine are read from the databases at scrape, so they are true when no process runs.
"""

import re
import time
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from prometheus_client import Counter, Gauge, Histogram

OTHER = "other"
"""Stands for every value that a bounded label does not take."""
MAX_VALUES = 64
"""Distinct values of one label whose values come from outside, per process; what follows is counted as `other`."""
SHORT_NAME = re.compile(r"[a-z0-9][a-z0-9_.@-]{0,79}")

BATCH_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
DELAY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0)


class Kind(StrEnum):
    """The Prometheus type of a metric."""

    COUNTER = "counter"
    """Only grows while the files live; read it with rate() or increase()."""
    HISTOGRAM = "histogram"
    """Counts of observations per bucket, their number and their sum."""
    GAUGE = "gauge"
    """The present value."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the contract. A counter's samples carry the suffix `_total`, which is part of `name` here."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()
    across: str = ""
    """For a gauge: how the values of several processes become one (a mode of prometheus_client)."""


ROUTE = ("producer", "destination")
EVENT = (*ROUTE, "event_type", "schema_version")

METRICS: tuple[Metric, ...] = (
    Metric("outbox_claimed_total", Kind.COUNTER, ROUTE, "Deliveries that a worker claimed."),
    Metric("outbox_lease_expired_total", Kind.COUNTER, ROUTE, "Expired leases that a worker recovered."),
    Metric("outbox_acknowledged_total", Kind.COUNTER, ROUTE, "Deliveries whose receipt was verified and stored."),
    Metric("outbox_retried_total", Kind.COUNTER, (*EVENT, "code"), "Deliveries put back to be tried again."),
    Metric("outbox_quarantined_total", Kind.COUNTER, (*EVENT, "reason"), "Deliveries moved into quarantine."),
    Metric("outbox_fenced_total", Kind.COUNTER, ROUTE, "Late results that changed nothing: the lease was another's."),
    Metric("outbox_ack_rejected_total", Kind.COUNTER, (*ROUTE, "reason"), "Acks that the dispatcher did not accept."),
    Metric("outbox_given_back_total", Kind.COUNTER, ROUTE, "Deliveries that a draining worker gave back untried."),
    Metric("outbox_renewed_total", Kind.COUNTER, ("producer",), "Leases prolonged by the heartbeat."),
    Metric("outbox_lost_leases_total", Kind.COUNTER, ("producer",), "Leases that the heartbeat found lost."),
    Metric(
        "outbox_batch_seconds",
        Kind.HISTOGRAM,
        (*ROUTE, "phase"),
        "Duration of a batch by phase.",
        buckets=BATCH_BUCKETS,
    ),
    Metric("outbox_nudges_total", Kind.COUNTER, ("owner", "outcome"), "Wake-ups after a commit."),
    Metric("outbox_published_total", Kind.COUNTER, ("producer", "verdict"), "Answers of outbox_publish per event."),
    Metric("outbox_consumer_applied_total", Kind.COUNTER, ("consumer", "outcome"), "Verdicts of a consumer per event."),
    Metric(
        "outbox_apply_delay_seconds",
        Kind.HISTOGRAM,
        ("consumer",),
        "From the creation of a batch's oldest event to its verified receipt.",
        buckets=DELAY_BUCKETS,
    ),
    Metric("outbox_rounds_total", Kind.COUNTER, ("producer", "outcome"), "Turns of a dispatcher: ok, or failed."),
    Metric(
        "outbox_last_round_timestamp_seconds",
        Kind.GAUGE,
        ("producer",),
        "When a dispatcher last finished a turn, Unix time.",
        across="max",
    ),
    Metric(
        "outbox_worker_processes",
        Kind.GAUGE,
        ("version", "region"),
        "Living worker processes by release and region.",
        across="livesum",
    ),
)
"""`phase` is claim, deliver or settle; `verdict` is complete or not_complete."""


def made(metric: Metric) -> Counter | Histogram | Gauge:
    """The metric of prometheus_client that counts in this process."""
    match metric.kind:
        case Kind.COUNTER:
            return Counter(metric.name, metric.meaning, metric.labels)
        case Kind.HISTOGRAM:
            return Histogram(metric.name, metric.meaning, metric.labels, buckets=metric.buckets)
        case Kind.GAUGE:
            # The mode is one of prometheus_client's literals; the table is closed and tested.
            return Gauge(metric.name, metric.meaning, metric.labels, multiprocess_mode=metric.across)  # type: ignore[arg-type]  # the table holds plain text


_METRICS = {metric.name: made(metric) for metric in METRICS}
_seen: defaultdict[str, set[str]] = defaultdict(set)


def bounded(label: str, value: str) -> str:
    """`value` as a label value: a short lower-case name, among at most `MAX_VALUES` of its label; else `other`."""
    known = _seen[label]
    if value in known:
        return value
    if len(known) >= MAX_VALUES or not SHORT_NAME.fullmatch(value):
        return OTHER
    known.add(value)
    return value


def _count(name: str, count: int, *labels: str) -> None:
    if count > 0:
        cast(Counter, _METRICS[name]).labels(*labels).inc(count)


def claimed(producer: str, destination: str, count: int) -> None:
    """A claim committed with `count` deliveries."""
    _count("outbox_claimed_total", count, producer, destination)


def recovered(producer: str, destination: str, count: int) -> None:
    """A claim committed that took over `count` expired leases."""
    _count("outbox_lease_expired_total", count, producer, destination)


def acknowledged(producer: str, destination: str, count: int) -> None:
    """A settle committed with `count` verified receipts."""
    _count("outbox_acknowledged_total", count, producer, destination)


def retried(producer: str, destination: str, *, event_type: str, schema_version: str, code: str, count: int) -> None:
    """A settle committed that put `count` deliveries of this kind back, for this normalised error code."""
    pair = bounded("event_type", event_type), bounded("schema_version", schema_version)
    _count("outbox_retried_total", count, producer, destination, *pair, bounded("code", code))


def quarantined(
    producer: str, destination: str, *, event_type: str, schema_version: str, reason: str, count: int
) -> None:
    """A settle committed that quarantined `count` deliveries of this kind, for this reason."""
    pair = bounded("event_type", event_type), bounded("schema_version", schema_version)
    _count("outbox_quarantined_total", count, producer, destination, *pair, bounded("reason", reason))


def fenced(producer: str, destination: str, count: int) -> None:
    """A settle changed nothing for `count` deliveries, because their leases belong to others by now."""
    _count("outbox_fenced_total", count, producer, destination)


def ack_rejected(producer: str, destination: str, reason: str, count: int) -> None:
    """The dispatcher refused `count` acks: receipt, coordinates or digest are not what the frozen member demands."""
    _count("outbox_ack_rejected_total", count, producer, destination, bounded("ack_reason", reason))


def given_back(producer: str, destination: str, count: int) -> None:
    """A draining worker gave `count` deliveries back."""
    _count("outbox_given_back_total", count, producer, destination)


def renewed(producer: str, count: int) -> None:
    """The heartbeat prolonged `count` leases."""
    _count("outbox_renewed_total", count, producer)


def lost_leases(producer: str, count: int) -> None:
    """The heartbeat found `count` leases that are no longer this worker's."""
    _count("outbox_lost_leases_total", count, producer)


def batch_seconds(producer: str, destination: str, phase: str, seconds: float) -> None:
    """One batch spent `seconds` in `phase`: claim, deliver or settle."""
    cast(Histogram, _METRICS["outbox_batch_seconds"]).labels(producer, destination, phase).observe(seconds)


def nudges(owner: str, outcome: str) -> None:
    """One wake-up after a commit: sent, coalesced with one under way, or failed."""
    _count("outbox_nudges_total", 1, owner, bounded("nudge_outcome", outcome))


def published(producer: str, complete: int, not_complete: int) -> None:
    """A settle committed in which `outbox_publish` gave these answers."""
    _count("outbox_published_total", complete, producer, "complete")
    _count("outbox_published_total", not_complete, producer, "not_complete")


def consumer_applied(consumer: str, outcome: str, count: int) -> None:
    """A consumer answered `count` events with this verdict: acknowledged, retryable or non_retryable."""
    _count("outbox_consumer_applied_total", count, consumer, bounded("applied_outcome", outcome))


def apply_delay(consumer: str, seconds: float) -> None:
    """The oldest event of a batch was applied `seconds` after its creation; a clock that runs behind counts as zero."""
    cast(Histogram, _METRICS["outbox_apply_delay_seconds"]).labels(consumer).observe(max(0.0, seconds))


def round_finished(*, producer: str, ok: bool) -> None:
    """A dispatcher finished one turn over its destinations, whether or not there was work."""
    _count("outbox_rounds_total", 1, producer, "ok" if ok else "failed")
    if ok:
        cast(Gauge, _METRICS["outbox_last_round_timestamp_seconds"]).labels(producer).set(time.time())


def worker_started(*, version: str, region: str) -> None:
    """This process works from now on, until it ends."""
    cast(Gauge, _METRICS["outbox_worker_processes"]).labels(version, region).set(1)
