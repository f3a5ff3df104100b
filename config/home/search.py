"""One box for every exact id: the projector's index, every producer's events, and billing's records."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connections

from config.look import gather
from config.owners import owner_named, producers
from config.readonly_admin import SECTIONS, Code, Link, Table
from outbox.admin.find import find_events
from outbox.models import OutboxEvent

PATIENCE_SECONDS = 2.0
LONGEST = 300
"""No identifier is longer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found: tables of hits, owners that gave no answer, and the address of the only hit if it is one."""

    asked: bool
    tables: tuple[Table, ...]
    unavailable: tuple[str, ...]
    only_hit: str | None


def search(text: str) -> Answer:
    """Every page that the exact id `text` leads to. An empty text finds nothing."""
    if not text or len(text) > LONGEST or "\x00" in text:
        return Answer(bool(text), (), (), None)
    looks: dict[str, Callable[[], Any]] = {
        owner.name: partial(_closing, partial(find_events, owner.read_alias, text), owner.read_alias)
        for owner in producers()
    }
    from billing.find import find_money
    from operations.timelines.find import find_operations

    for name, find, alias in (
        ("operations", find_operations, owner_named("core").read_alias),
        ("money", find_money, owner_named("billing").read_alias),
    ):
        looks[name] = partial(_closing, partial(find, alias, text), alias)
    seen = gather(looks, patience=PATIENCE_SECONDS)
    tables = [*(seen["operations"].value or ()), *(seen["money"].value or ())]
    tables += [_events(name, seen[name].value) for name in (owner.name for owner in producers()) if seen[name].value]
    links = {row[0].url for table in tables for row in table.rows}
    return Answer(
        asked=True,
        tables=tuple(tables),
        unavailable=tuple(name for name, found in seen.items() if found.problem),
        only_hit=links.pop() if len(links) == 1 and not any(found.problem for found in seen.values()) else None,
    )


def _events(name: str, events: list[OutboxEvent] | None) -> Table:
    pages: Any = SECTIONS[name]._registry[OutboxEvent]
    rows = tuple(
        (Link(event.event_id, pages.url_of(event)), Code(event.event_type), pages.aggregate(event), event.created_at)
        for event in events or ()
    )
    return Table(f"Events of {name}", ("Event", "Event type", "Aggregate", "Created"), rows)


def _closing(look: Callable[[], Any], alias: str) -> Any:
    try:
        return look()
    finally:
        connections[alias].close()
