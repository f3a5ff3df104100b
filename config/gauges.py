"""All gauges at scrape: each owner looked at once, in parallel, section by section, each section with a bound.

A database that is down, or a section that takes too long, is itself a value (`owner_up`, `owner_section_up`); the rest
of the page stays. The sections are files of the rooms they speak of, each with a table `GAUGES` and a function `read`.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.backends.utils import CursorWrapper
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from config.look import look_at
from config.owners import OWNERS, Owner
from outbox.gauges import Sample
from outbox.metrics import Kind, Metric

log = structlog.get_logger("config.gauges")


class Section(Protocol):
    """What one file of gauges offers."""

    GAUGES: tuple[Metric, ...]
    read: Callable[[Owner, CursorWrapper], Iterator[Sample]]


@dataclass(frozen=True, slots=True)
class Place:
    """A section, and the owners whose databases it reads."""

    name: str
    module: str
    reads: Callable[[Owner], bool]

    def load(self) -> Section:
        """The module; imported late, because it needs the apps."""
        section: Section = import_module(self.module)
        return section


SECTIONS: tuple[Place, ...] = (
    Place("outbox", "outbox.gauges", lambda owner: owner.produces),
    Place("projector", "operations.projector.metrics", lambda owner: "projector" in owner.apps),
    Place("holds", "billing.finalization.metrics", lambda owner: "finalization" in owner.apps),
    Place("quota", "billing.commercial.gauges", lambda owner: "commercial" in owner.apps),
    Place("files", "attachments.files.gauges", lambda owner: "files" in owner.apps),
    Place("telemetry", "metering.otlp.gauges", lambda owner: "otlp" in owner.apps),
    Place("consumption", "metering.consumption.metrics", lambda owner: "consumption" in owner.apps),
    Place("server", "config.server_gauges", lambda _: True),
)

OWN_GAUGES: tuple[Metric, ...] = (
    Metric("owner_up", Kind.GAUGE, ("owner",), "1 if the owner's database answers its read role, else 0."),
    Metric("owner_section_up", Kind.GAUGE, ("owner", "section"), "1 if these gauges were read in time, else 0."),
    Metric("backbone_info", Kind.GAUGE, ("version", "region"), "1; the release that answers the scrape, and where."),
)


def all_gauges() -> tuple[Metric, ...]:
    """Every gauge that is read at scrape."""
    return (*OWN_GAUGES, *(metric for place in SECTIONS for metric in place.load().GAUGES))


class OwnerGauges(Collector):
    """The collector for a Prometheus registry."""

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Empty families, so that registering asks no database."""
        return [GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels) for metric in all_gauges()]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Look at every owner now."""
        families = {family.name: family for family in self.describe()}
        for sample in samples(patience=settings.METRICS_PATIENCE):
            families[sample.name].add_metric(sample.labels, sample.value)
        return families.values()


def samples(*, patience: float) -> Iterator[Sample]:
    """Every gauge's present value, within about `patience` seconds."""
    yield Sample("backbone_info", (settings.RELEASE, settings.REGION), 1.0)
    deadline = time.monotonic() + patience
    for name, seen in look_at(
        OWNERS, lambda owner, cursor: _sections(owner, cursor, deadline), patience=patience
    ).items():
        yield Sample("owner_up", (name,), 0.0 if seen.problem else 1.0)
        if seen.problem:
            log.warning("owner_not_seen", owner=name, problem=seen.problem)
        yield from seen.value or ()


def _sections(owner: Owner, cursor: CursorWrapper, deadline: float) -> list[Sample]:
    found: list[Sample] = []
    for place in SECTIONS:
        if not place.reads(owner):
            continue
        ok = True
        try:
            with transaction.atomic(using=owner.read_alias):
                left = max(0.001, deadline - time.monotonic())
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{left * 1000:.0f}ms"])
                found += place.load().read(owner, cursor)
        except DatabaseError as error:
            ok = False
            log.warning("section_not_read", owner=owner.name, section=place.name, error_class=type(error).__name__)
        found.append(Sample("owner_section_up", (owner.name, place.name), float(ok)))
    return found
