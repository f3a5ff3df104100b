"""What the first page shows: the state of every producer and of the projector, read at once through the read roles.

An owner whose database gives no answer is shown as unavailable; the others are shown all the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.db import connections
from django.urls import reverse
from django.utils import timezone

from config.look import Seen, gather
from config.owners import Owner, owner_named, producers
from config.readonly_admin import State
from config.readonly_admin.charts import Bar, Bars, Layer, Stack, stacked
from operations.timelines.glance import OperationsGlance, operations_glance
from outbox.admin.glance import BACKLOG_CAP, RATE_STEP, RATE_WINDOW, STEPS, Glance, glance

PATIENCE_SECONDS = 2.0
"""How long the page waits for a database that gives no answer."""
BEHIND_SECONDS = 60.0
"""A bound destination whose oldest delivery waits longer than this is behind."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnerState:
    """One producer on the board; `glance` is missing while its database gives no answer."""

    name: str
    url: str
    state: State
    glance: Glance | None
    problem: str | None
    spark: Stack | None
    oldest_age: float | None
    links: dict[str, str]


@dataclass(frozen=True, slots=True)
class Board:
    """Everything on the page; `operations` is None while core gives no answer."""

    owners: tuple[OwnerState, ...]
    operations: OperationsGlance | None
    links: dict[str, str]
    backlog: Bars
    quarantine: Bars
    rates: Stack
    delivered: int
    waiting: int
    capped: bool
    oldest_age: float | None
    per_second: float
    window_minutes: int
    failures: int
    quarantined: int
    awaiting: int
    unavailable: tuple[str, ...]

    @property
    def began(self) -> str:
        """The left end of the chart."""
        return f"{self.window_minutes} min ago"


def board(only: Owner | None = None) -> Board:
    """The board of all producers, or of one."""
    shown = (only,) if only else producers()
    core = owner_named("core")
    looks: dict[str, Callable[[], Any]] = {
        owner.name: partial(_closing, partial(glance, owner), owner.read_alias) for owner in shown
    }
    if only in {None, core}:
        looks["operations"] = partial(_closing, partial(operations_glance, core.read_alias), core.read_alias)
    seen = gather(looks, patience=PATIENCE_SECONDS)
    now = timezone.now()
    owners = tuple(_owner(owner, seen[owner.name], now) for owner in shown)
    glances = [(state, state.glance) for state in owners if state.glance]
    backlogs = [(state, backlog) for state, found in glances for backlog in found.backlogs]
    operations = seen["operations"].value if "operations" in seen else None
    ages = [age for state in owners if (age := state.oldest_age) is not None]
    return Board(
        owners=owners,
        operations=operations,
        links={name: reverse(f"core:{name}") for name in ("operations", "unlinked", "gaps")},
        backlog=Bars.of(
            Bar(
                (state.name, backlog.destination),
                backlog.waiting,
                f"{backlog.waiting:,}" if not backlog.capped else f"more than {BACKLOG_CAP:,}",
                _tone(backlog.bound, backlog.oldest, now),
                state.links["deliveries"] + f"?queue=pending~{backlog.destination}",
                "" if backlog.bound else "awaiting consumer" if backlog.waiting else "no consumer bound",
                max((now - backlog.oldest).total_seconds(), 0.0) if backlog.oldest else None,
            )
            for state, backlog in backlogs
        ),
        quarantine=Bars.of(
            Bar(
                (state.name, group.reason, group.event_type, group.destination),
                group.number,
                str(group.shown_number) if isinstance(group.shown_number, str) else f"{group.number:,}",
                "bad",
                state.links["quarantine"] + f"?group={group.key}",
            )
            for state, found in glances
            for group in found.groups
        ),
        rates=_rates({state.name: found for state, found in glances}),
        delivered=sum(sum(found.acknowledged) for _, found in glances),
        waiting=sum(found.waiting for _, found in glances),
        capped=any(found.capped for _, found in glances),
        oldest_age=max(ages, default=None),
        per_second=sum(found.per_second for _, found in glances),
        window_minutes=int(RATE_WINDOW.total_seconds() // 60),
        failures=sum(found.recent_failures for _, found in glances),
        quarantined=sum(found.quarantined for _, found in glances),
        awaiting=sum(found.awaiting_consumer for _, found in glances),
        unavailable=tuple(state.name for state in owners if state.glance is None),
    )


def _closing(look: Callable[[], T], alias: str) -> T:
    try:
        return look()
    finally:
        connections[alias].close()


def _owner(owner: Owner, seen: Seen[Glance], now: datetime) -> OwnerState:
    found = seen.value
    age = (now - found.oldest).total_seconds() if found and found.oldest else None
    return OwnerState(
        name=owner.name,
        url=reverse(f"{owner.name}:index"),
        state=_state(seen, now),
        glance=found,
        problem=seen.problem,
        spark=_rates({owner.name: found}) if found else None,
        oldest_age=max(age, 0.0) if age is not None else None,
        links={slug: reverse(f"{owner.name}:{slug}") for slug in ("events", "deliveries", "failures", "quarantine")},
    )


def _rates(found: Mapping[str, Glance]) -> Stack:
    """Acknowledged deliveries per owner and step, with failures of all owners on top."""
    layers = [Layer(name, f"slot-{slot}", glance.acknowledged) for slot, (name, glance) in enumerate(found.items())]
    failed = [sum(counts) for counts in zip(*(glance.failed for glance in found.values()), strict=True)]
    if any(failed):
        layers.append(Layer("failed", "slot-failed", failed))
    seconds = RATE_STEP.total_seconds()
    return stacked(layers, times=[f"in {seconds:.0f} s"] * (STEPS if found else 0), per=seconds, least=0.1)


def _state(seen: Seen[Glance], now: datetime) -> State:
    found = seen.value
    if found is None:
        return State("unavailable", "unavailable", seen.problem or "The database gave no answer.")
    if found.quarantined:
        return State("quarantined", "quarantine", "Some deliveries can not be applied.")
    if any(_tone(backlog.bound, backlog.oldest, now) == "bad" for backlog in found.backlogs):
        return State("behind", "behind", f"The oldest delivery waits longer than {BEHIND_SECONDS:.0f} s.")
    if found.awaiting_consumer:
        return State(
            "awaiting-consumer", "awaiting consumer", "Deliveries wait for a destination that nobody serves yet."
        )
    if found.waiting:
        return State("leased", "delivering", "Deliveries are on their way.")
    return State("clear", "clear", "Nothing waits.")


def _tone(bound: bool, oldest: datetime | None, now: datetime) -> str:
    if not bound:
        return "warn"
    return "bad" if oldest and (now - oldest).total_seconds() > BEHIND_SECONDS else "work"
