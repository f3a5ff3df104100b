"""Who may read what is meant for monitoring only: peers of listed networks that come without a proxy."""

import ipaddress
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound

from config import environment

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
View = Callable[..., HttpResponse]

FORWARDED = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_VIA")
"""What proxies add. Behind one, every visitor has the proxy's address, which is often this machine's own."""


def networks(name: str, default: str) -> tuple[Network, ...]:
    """A comma-separated list of networks. Raises `ImproperlyConfigured`, naming the one that is none."""
    found = []
    for part in environment.text(name, default).split(","):
        try:
            found.append(ipaddress.ip_network(part.strip()))
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {error}. Write networks such as 127.0.0.0/8,10.0.0.0/16.") from None
    return tuple(found)


def is_near(request: HttpRequest, allowed: Sequence[Network]) -> bool:
    """Whether the peer itself, with no proxy between, has an address of the `allowed` networks."""
    if any(request.META.get(header) for header in FORWARDED):
        return False
    return is_address_in(request.META.get("REMOTE_ADDR", ""), allowed)


def is_address_in(text: str, allowed: Sequence[Network]) -> bool:
    """Whether this is an address, and one of the `allowed` networks."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in network for network in allowed)


def monitoring_only(view: View) -> View:
    """Answer peers of `METRICS_NETWORKS`; to everyone else there is no such page."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not is_near(request, settings.METRICS_NETWORKS):
            return HttpResponseNotFound()
        return view(request, *args, **kwargs)

    return answer
