"""A web process keeps no session of an owner role, and so many calls at once, and no more, have one.

A call makes what it needs and gives it up at its end. More calls than `API_AT_ONCE` wait; so the sessions of a web
process can be counted beforehand (`config.connections`), and a flood is put off before a database is asked to bear it.
"""

import functools
from collections.abc import Callable
from functools import cache
from threading import BoundedSemaphore
from typing import Any, Final

from django.conf import settings
from django.db import connections

from attachments.http.problems import Kind, problem

PATIENCE_SECONDS: Final = 10.0
"""How long a call waits for its turn."""
BUSY = "Too much is under way. Nothing was touched; repeat the same request."


@cache
def _seats() -> BoundedSemaphore:
    return BoundedSemaphore(settings.API_AT_ONCE)


def gives_up_connections(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wait for a turn, and close what the call opened, but for what a pool holds.

    Each request has a thread, so a session that is left open would be lost.
    """

    @functools.wraps(call)
    def calling(*args: Any, **kwargs: Any) -> Any:
        if not _seats().acquire(timeout=PATIENCE_SECONDS):
            return problem(Kind.UNAVAILABLE, BUSY)
        try:
            return call(*args, **kwargs)
        finally:
            for connection in connections.all(initialized_only=True):
                if connection.settings_dict["CONN_MAX_AGE"] is None and not connection.in_atomic_block:
                    connection.close()
            _seats().release()

    return calling
