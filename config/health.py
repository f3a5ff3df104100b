"""/health/live, /health/ready and /health/version, for load balancers, supervisors and people.

`live` says that the process answers. `ready` says that it can work: every owner's database answers its read role and
has every migration, and the broker answers. Its body names what is missing, never an address or a login. `version` says
which release runs where.
"""

import time
from dataclasses import dataclass
from typing import Any

import redis
from django.conf import settings
from django.db.backends.utils import CursorWrapper
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from config.look import Seen, gather, look_at
from config.migrated import unapplied
from config.owners import OWNERS, Owner

PATIENCE_SECONDS = 3.0
"""A probe commonly waits 5 seconds."""
REMEMBERED_SECONDS = 1.0
"""Probes of several balancers within this time share one look at the databases."""


@dataclass(slots=True)
class _Last:
    at: float
    parts: dict[str, str]


_last = _Last(at=float("-inf"), parts={})


@require_safe
@never_cache
def live(request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers at all."""
    return JsonResponse({"live": True})


@require_safe
@never_cache
def version(request: HttpRequest) -> HttpResponse:
    """The release and the region of this process."""
    return JsonResponse({"version": settings.RELEASE, "region": settings.REGION})


@require_safe
@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    """200 when every part is ready, else 503; the body says of each part `ready`, or what it lacks."""
    parts = _parts()
    is_ready = all(state == "ready" for state in parts.values())
    return JsonResponse({"ready": is_ready, "parts": parts}, status=200 if is_ready else 503)


def _parts() -> dict[str, str]:
    if time.monotonic() - _last.at > REMEMBERED_SECONDS:
        _last.parts = look_around()
        _last.at = time.monotonic()
    return _last.parts


def look_around() -> dict[str, str]:
    """The state of each part, now: `ready`, `unreachable`, or how many migrations it lacks."""
    databases = look_at(OWNERS, _missing, patience=PATIENCE_SECONDS)
    broker = gather({"broker": _ping}, patience=PATIENCE_SECONDS)["broker"]
    return {
        **{f"database {name}": _state(seen) for name, seen in databases.items()},
        "broker": "unreachable" if broker.problem else "ready",
    }


def _missing(owner: Owner, cursor: CursorWrapper) -> int:
    return sum(len(names) for names in unapplied(owner, cursor).values())


def _state(seen: Seen[int]) -> str:
    if seen.problem is not None:
        return "unreachable"
    return f"lacks {seen.value} migrations" if seen.value else "ready"


def _ping() -> Any:
    with redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS, retry=None
    ) as client:
        return client.ping()
