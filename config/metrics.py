"""/metrics: what all processes of this machine counted, and what the databases say at this moment (O33).

Everything it can show stands in a table: the `METRICS` of the modules in `COUNTING` (counted), the `GAUGES` of the
sections in `config.gauges` (read at scrape), and django-prometheus's own names for HTTP requests. Dashboards and rules
may use these names only, by test. Where workers run on machines of their own, each serves its counters on
`WORKER_METRICS_PORT`; the gauges come from any web process and would be the same everywhere.
"""

from functools import cache
from importlib import import_module

import structlog
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest, start_http_server
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from config.access import monitoring_only
from config.gauges import OwnerGauges, all_gauges
from config.metric_files import LivingAndDead, directory
from outbox.metrics import Metric

COUNTING = (
    "outbox.metrics",
    "metering.otlp.metrics",
    "billing.commercial.metrics",
    "attachments.files.metrics",
    "attachments.connectors.metrics",
    "attachments.http.metrics",
)
"""Modules whose processes count. Only those processes import them: an imported counter is shown, even at zero."""

log = structlog.get_logger("config.metrics")


def all_metrics() -> tuple[Metric, ...]:
    """The public contract: every metric of this software by name, type, labels and meaning."""
    counted = (metric for module in COUNTING for metric in import_module(module).METRICS)
    return (*counted, *all_gauges())


@require_safe
@never_cache
@monitoring_only
def metrics(request: HttpRequest) -> HttpResponse:
    """The page that Prometheus scrapes, in its text format."""
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def exposition() -> bytes:
    """All metrics now: counters of the processes, gauges of the databases."""
    registry = counters()
    return generate_latest(registry) + generate_latest(_gauges())


def counters() -> CollectorRegistry:
    """Counters of every process of this machine; of this process alone where they share no directory."""
    place = directory()
    if place is None or not place.is_dir():
        return REGISTRY
    registry = CollectorRegistry(auto_describe=False)
    LivingAndDead(place=place, registry=registry)
    return registry


@cache
def _gauges() -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(OwnerGauges())
    return registry


def serve_counters(*, port: int, address: str) -> None:
    """Serve the counters of this machine from a thread of this process, for a worker without a web server beside it."""

    class Now(Collector):
        def collect(self) -> "list[Family]":
            return list(counters().collect())

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Now())
    start_http_server(port, addr=address, registry=registry)
    log.info("worker_metrics_served", port=port, address=address)
