"""A web process keeps no session of an owner role: each call makes what it needs and gives it up at its end."""

import functools
from collections.abc import Callable
from typing import Any

from django.db import connections


def gives_up_connections(call: Callable[..., Any]) -> Callable[..., Any]:
    """Close what the call opened, but for what a pool holds. Each request has a thread, so a session would be lost."""

    @functools.wraps(call)
    def calling(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        finally:
            for connection in connections.all(initialized_only=True):
                if connection.settings_dict["CONN_MAX_AGE"] is None and not connection.in_atomic_block:
                    connection.close()

    return calling
