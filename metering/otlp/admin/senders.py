"""The clusters that send, and one page for each: what arrived, what was dropped, and when it was last seen."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from config.readonly_admin import Code, Link, ReadOnlyAdmin, State, Table
from config.readonly_admin.charts import Layer, Stack, stacked
from metering.otlp.admin.drops import kind_state, reason_state
from metering.otlp.admin.of_cluster import cluster_link, is_cluster_id
from metering.otlp.admin.receipt import (
    DAYS,
    HOURS,
    MOST_SENDERS,
    Arrivals,
    accepted_by_day,
    arrivals,
    by_step,
    drops,
    last_seen,
    senders,
)
from metering.otlp.fields import Kind
from metering.otlp.models import Conflict, Drop, LlmBillingEvent, ResourceUtilizationEvent

NAMES = {Kind.LLM_BILLING: "LLM calls", Kind.RESOURCE_UTILIZATION: "resource samples"}
SINGLE = {Kind.LLM_BILLING: "LLM call", Kind.RESOURCE_UTILIZATION: "resource sample"}
SLOTS = {Kind.LLM_BILLING: "slot-0", Kind.RESOURCE_UTILIZATION: "slot-1"}
DROP_SLOTS = ("slot-failed", "slot-3", "slot-2", "slot-4", "slot-0", "slot-1")
CONFLICTS = 10
"""Contradictions that the page of a cluster shows."""


class SenderAdmin(ReadOnlyAdmin):
    slug = "senders"
    label = "Senders"
    group = "Events"
    position = 80
    about = "Clusters from which events came: when each was last seen, and what became of what it sent."
    order = ("-bucket", "-cluster_id", "-kind")
    list_template = "operator/senders.html"
    row_template = "operator/sender.html"

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """All senders, with a chart of what arrived from all of them."""
        self._ensure_may_view(request)
        found = senders(self.alias)
        cells = tuple(
            (
                cluster_link(one.cluster_id),
                one.last_at,
                one.llm_at,
                one.resource_at,
                one.stored,
                one.duplicates,
                State("mismatched", f"{one.conflicts:,}") if one.conflicts else 0,
                State("refused", f"{one.dropped:,}") if one.dropped else 0,
            )
            for one in found
        )
        headings = ("Cluster", "Last seen", "LLM call", "Resource sample", "Stored", "Duplicates", "Conflicts", "Drops")
        note = f"counts of the last {HOURS} hours" + (", the first of more" if len(found) >= MOST_SENDERS else "")
        context = {
            "title": self.label,
            "arrivals": _arrivals_chart(arrivals(self.alias, now=timezone.now())),
            "began": f"{HOURS} h ago",
            "table": Table("By cluster", headings, cells, "Nothing has come yet.", note),
        }
        return self.answer(request, self.list_template, context)

    def row_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """One cluster; one that sent nothing has a page that says so."""
        self._ensure_may_view(request)
        if not is_cluster_id(key):
            raise Http404("A cluster is a decimal number.")
        now = timezone.now()
        found = arrivals(self.alias, now=now, cluster_id=key)
        days, accepted = accepted_by_day(self.alias, now=now, cluster_id=key)
        dropped = drops(self.alias, key)
        conflicts = list(Conflict.objects.using(self.alias).filter(cluster_id=key).order_by("-conflict_id")[:CONFLICTS])
        context = {
            "title": f"Cluster {key}",
            "list_url": self.list_url(),
            "list_label": self.label,
            "hours": HOURS,
            "days": DAYS,
            "seen": [(SINGLE[kind], at, _age(at, now)) for kind, at in last_seen(self.alias, key).items()],
            "stored": sum(sum(counts) for counts in found.stored.values()),
            "duplicates": sum(found.duplicates),
            "conflicts": sum(found.conflicts),
            "dropped": sum(row[3] for row in dropped),
            "arrivals": _arrivals_chart(found),
            "drops": _drops_chart(dropped, found.starts),
            "by_day": stacked(
                [Layer(NAMES[kind], SLOTS[kind], accepted[kind]) for kind in Kind],
                times=[f"on {day.isoformat()}" for day in days],
            ),
            "began": f"{HOURS} h ago",
            "began_days": f"{DAYS} d ago",
            "tables": [
                self._drops_table(dropped),
                self.sibling(Conflict).table(conflicts, title="Latest conflicts", empty="Nothing contradicts."),
            ],
            "links": self._links(key),
        }
        return self.answer(request, self.row_template, context)

    def _drops_table(self, rows: Sequence[tuple[Any, ...]]) -> Table:
        latest: dict[tuple[str, str], list[Any]] = {}
        for _, reason, kind, dropped, event_id, last_at in rows:
            total = latest.get((reason, kind), [0])[0]
            latest[reason, kind] = [total + dropped, event_id, last_at]
        cells = tuple(
            (reason_state(reason), kind_state(kind), total, Code(event_id) if event_id else None, last_at)
            for (reason, kind), (total, event_id, last_at) in sorted(latest.items(), key=lambda item: -item[1][0])
        )
        headings = ("Reason", "Kind", "Dropped", "Last event id", "Last")
        return Table(f"Dropped in the last {HOURS} hours", headings, cells, "Nothing was dropped.")

    def _links(self, cluster_id: str) -> list[Link]:
        models: tuple[type[Model], ...] = (LlmBillingEvent, ResourceUtilizationEvent, Conflict, Drop)
        pages = [self.sibling(model) for model in models]
        own = [Link(one.label, one.list_url(cluster=cluster_id)) for one in pages]
        return [*own, Link("Tokens and settings", reverse("metering:clusters_row", args=[cluster_id]))]


def _age(at: datetime | None, now: datetime) -> float | None:
    return max(0.0, (now - at).total_seconds()) if at else None


def _arrivals_chart(found: Arrivals) -> Stack:
    layers = [Layer(NAMES[kind], SLOTS[kind], found.stored[kind]) for kind in Kind]
    layers.append(Layer("duplicates", "slot-3", found.duplicates))
    if any(found.conflicts):
        layers.append(Layer("conflicts", "slot-failed", found.conflicts))
    return stacked(layers, times=_times(found.starts))


def _drops_chart(rows: Sequence[tuple[Any, ...]], starts: Sequence[datetime]) -> Stack:
    counts = by_step(rows, starts)
    named = list(counts.items())[: len(DROP_SLOTS) - 1]
    rest = [sum(parts) for parts in zip(*list(counts.values())[len(named) :], strict=True)]
    layers = [Layer(reason, slot, values) for (reason, values), slot in zip(named, DROP_SLOTS, strict=False)]
    if rest:
        layers.append(Layer("others", DROP_SLOTS[-1], rest))
    return stacked(layers, times=_times(starts))


def _times(starts: Sequence[datetime]) -> list[str]:
    return [f"in ten minutes from {start:%Y-%m-%d %H:%M}" for start in starts]
