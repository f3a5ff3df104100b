"""What the receiver counts (T11). `METRICS` is the public contract; each process counts into its own file.

`otlp_events_ingested_total` says that events flow. It counts a resend again, so it is never what was billed; the exact
numbers per cluster stand in the database (`Tally`, `Drop`). No label holds a cluster or any other id: a failed
authentication has none yet, and the list of clusters is not closed.
"""

from collections.abc import Mapping
from typing import cast

from prometheus_client import Counter, Histogram

from metering.clusters.authenticate import Reason
from metering.otlp.fields import Field
from metering.otlp.models import ConflictReason
from metering.otlp.reasons import RefusedBody, Unavailable
from outbox.metrics import Kind as Type
from outbox.metrics import Metric, made

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

METRICS: tuple[Metric, ...] = (
    Metric("otlp_dropped_total", Type.COUNTER, ("reason",), "Records dropped, by the contract's name of the field."),
    Metric("otlp_auth_failed_total", Type.COUNTER, ("reason",), "Requests whose bearer token opened nothing."),
    Metric("otlp_events_ingested_total", Type.COUNTER, (), "Events that reached their sink, resent ones included."),
    Metric("otlp_stored_total", Type.COUNTER, (), "Events stored for the first time."),
    Metric("otlp_duplicates_total", Type.COUNTER, (), "Accepted events that were stored before with the same content."),
    Metric("otlp_conflicts_total", Type.COUNTER, ("reason",), "Events that contradict what was stored before them."),
    Metric("otlp_disagreements_total", Type.COUNTER, ("reason",), "Record attributes that overrode their resource's."),
    Metric("otlp_rate_limited_total", Type.COUNTER, (), "Requests answered 429."),
    Metric("otlp_limiter_lost_total", Type.COUNTER, (), "Requests let through by this process's own limit alone."),
    Metric("otlp_refused_bodies_total", Type.COUNTER, ("reason",), "Bodies that their clients drop after the answer."),
    Metric("otlp_unavailable_total", Type.COUNTER, ("reason",), "Requests answered 503, which clients send again."),
    Metric("otlp_request_seconds", Type.HISTOGRAM, (), "From the end of a body to its answer.", buckets=SECONDS),
)

REASONS: dict[str, tuple[str, ...]] = {
    "otlp_dropped_total": tuple(Field),
    "otlp_auth_failed_total": tuple(Reason),
    "otlp_conflicts_total": tuple(ConflictReason.values),
    "otlp_disagreements_total": tuple(Field),
    "otlp_refused_bodies_total": tuple(RefusedBody),
    "otlp_unavailable_total": tuple(Unavailable),
}
"""All values of `reason`."""

_METRICS = {metric.name: made(metric) for metric in METRICS}


def begin() -> None:
    """Show every counter at zero, so that the first thing counted is an increase that an alert can see."""
    for metric in METRICS:
        if metric.kind is Type.COUNTER:
            counter = cast(Counter, _METRICS[metric.name])
            for reason in REASONS.get(metric.name, ()):
                counter.labels(reason).inc(0)
            if not metric.labels:
                counter.inc(0)


def _count(name: str, count: int, *labels: str) -> None:
    if count > 0:
        counter = cast(Counter, _METRICS[name])
        (counter.labels(*labels) if labels else counter).inc(count)


def dropped(counts: Mapping[Field, int]) -> None:
    """Records of one request were dropped."""
    for reason, count in counts.items():
        _count("otlp_dropped_total", count, reason.value)


def auth_failed(reason: str) -> None:
    """A token opened nothing; `reason` is one of `metering.clusters.authenticate.Reason`."""
    _count("otlp_auth_failed_total", 1, reason)


def ingested(count: int) -> None:
    """So many events reached their sink."""
    _count("otlp_events_ingested_total", count)


def stored(*, new: int, duplicates: int) -> None:
    """A transaction of the store committed."""
    _count("otlp_stored_total", new)
    _count("otlp_duplicates_total", duplicates)


def conflicts(counts: Mapping[str, int]) -> None:
    """Events were found to contradict what was stored before, by `ConflictReason`."""
    for reason, count in counts.items():
        _count("otlp_conflicts_total", count, reason)


def disagreements(counts: Mapping[Field, int]) -> None:
    """Attributes of records said something else than their resource's."""
    for field, count in counts.items():
        _count("otlp_disagreements_total", count, field.value)


def rate_limited() -> None:
    """A request was answered 429."""
    _count("otlp_rate_limited_total", 1)


def limiter_lost() -> None:
    """A request was measured by this process alone, because the limiter's store did not answer."""
    _count("otlp_limiter_lost_total", 1)


def refused_body(reason: RefusedBody) -> None:
    """A body was refused for good."""
    _count("otlp_refused_bodies_total", 1, reason.value)


def unavailable(reason: Unavailable) -> None:
    """A request was answered 503."""
    _count("otlp_unavailable_total", 1, reason.value)


def request_seconds(seconds: float) -> None:
    """A request was answered so long after its body had arrived."""
    cast(Histogram, _METRICS["otlp_request_seconds"]).observe(seconds)
