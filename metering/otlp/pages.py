"""What the receiver answers beside telemetry: health for balancers, and its counters for whoever monitors it (T11)."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db.backends.utils import CursorWrapper
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from config.access import FORWARDED, Network, is_address_in
from config.look import look_at
from config.metrics import counters
from config.owners import Owner, owner_named
from metering.otlp.answers import JSON, Answer

PATIENCE_SECONDS = 3.0
FORWARDED_HEADERS = frozenset(name.removeprefix("HTTP_").replace("_", "-").lower().encode() for name in FORWARDED)


@dataclass(frozen=True, slots=True)
class Page:
    """One page; `is_private` ones are for the monitoring networks only, and not there for anyone else."""

    answer: Callable[[], Awaitable[Answer]]
    is_private: bool


async def _live() -> Answer:
    """200 as long as the process answers at all."""
    return Answer(200, orjson.dumps({"live": True}), JSON)


async def _ready() -> Answer:
    """200 when tokens and store can be asked, else 503; the body says which can not."""
    owners = [owner_named("metering"), owner_named("telemetry")]
    seen = await asyncio.to_thread(look_at, owners, _ask, patience=PATIENCE_SECONDS)
    parts = {name: "unreachable" if found.problem else "ready" for name, found in seen.items()}
    is_ready = set(parts.values()) == {"ready"}
    return Answer(200 if is_ready else 503, orjson.dumps({"ready": is_ready, "parts": parts}), JSON)


def _ask(_owner: Owner, cursor: CursorWrapper) -> None:
    cursor.execute("SELECT 1")


async def _metrics() -> Answer:
    """The counters of all processes of this machine."""
    text = await asyncio.to_thread(lambda: generate_latest(counters()))
    return Answer(200, text, CONTENT_TYPE_LATEST.encode())


PAGES: dict[str, Page] = {
    "/health/live": Page(_live, is_private=False),
    "/health/ready": Page(_ready, is_private=False),
    "/metrics": Page(_metrics, is_private=True),
}


def may_read(scope: MutableMapping[str, Any], page: Page, allowed: Sequence[Network]) -> bool:
    """Whether the peer may see the page: a private one only without a proxy between, from the `allowed` networks."""
    if not page.is_private:
        return True
    if any(name in FORWARDED_HEADERS and value for name, value in scope["headers"]):
        return False
    client = scope.get("client")
    return client is not None and is_address_in(client[0], allowed)
