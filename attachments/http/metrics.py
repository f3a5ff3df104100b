"""What web processes count about the API. `METRICS` is the public contract; no label holds a tenant or any other id.

Every series is shown at zero from the start, so that the first thing counted is an increase that an alert can see.
"""

from enum import StrEnum
from functools import cache
from typing import cast

from prometheus_client import Counter

from attachments.http.kinds import Kind
from outbox.metrics import Kind as MetricKind
from outbox.metrics import Metric, made


class Written(StrEnum):
    """What became of attachments: the closed values of `kind`."""

    STORED = "stored"
    """An upload made an attachment."""
    REPEATED = "repeated"
    """An upload that had made one came again, and was written again."""
    REPLACED = "replaced"
    """An attachment got another content."""
    ATTACHMENT_DELETED = "attachment_deleted"
    """One attachment was deleted."""
    ITEM_DELETED = "item_deleted"
    """An item was deleted with its attachments."""
    CLAIM_DELETED = "claim_deleted"
    """A draft was deleted with everything in it."""


METRICS: tuple[Metric, ...] = (
    Metric("api_problems_total", MetricKind.COUNTER, ("kind",), "Requests of the API that were refused, by why."),
    Metric("api_attachments_total", MetricKind.COUNTER, ("kind",), "Changes of attachments that committed."),
)

_METRICS = {metric.name: made(metric) for metric in METRICS}


@cache
def _counter(name: str, label: str) -> Counter:
    return cast(Counter, _METRICS[name]).labels(label)


for _kind in Kind:
    _counter("api_problems_total", _kind)
for _what in Written:
    _counter("api_attachments_total", _what)


def refused(kind: Kind) -> None:
    """A request was answered with this problem."""
    _counter("api_problems_total", kind).inc()


def written(what: Written) -> None:
    """A change committed."""
    _counter("api_attachments_total", what).inc()
