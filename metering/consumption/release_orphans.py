"""Release orphans whose key became known: their stored amounts move to its organisation, in all their windows (T13).

Their events are not looked at again, so an orphan can still be released when its events are no longer kept.
"""

from collections.abc import Callable, Iterator, Mapping

from django.db import connections, transaction

from metering.clusters.managed_keys import organizations_of
from metering.consumption import statements
from metering.consumption.window import ALIAS, Window, hold
from outbox.steps import reach

PAGE = 1_000
"""Keys asked about at once."""


def release_orphans(*, go_on: Callable[[], bool]) -> int:
    """How many lines found their organisation. Stops between two windows when `go_on` says so, not before the first.

    A window that another holds is left for the next sweep.
    """
    released = 0
    for known in _known_keys():
        for window in _windows_of(known):
            released += _release(window, known)
            if not go_on():
                return released
    return released


def _known_keys() -> Iterator[Mapping[str, str]]:
    """Keys of orphans that are known by now, with their organisations, page by page."""
    after = ""
    while True:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(statements.UNKNOWN_KEYS, {"after": after, "page": PAGE})
            keys = [key for (key,) in cursor.fetchall()]
        if not keys:
            return
        after = keys[-1]
        if known := organizations_of(keys):
            yield known


def _windows_of(known: Mapping[str, str]) -> list[Window]:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statements.WINDOWS_OF_ORPHANS, {"keys": list(known)})
        return [Window(*row) for row in cursor.fetchall()]


def _release(window: Window, known: Mapping[str, str]) -> int:
    with transaction.atomic(using=ALIAS, durable=True), connections[ALIAS].cursor() as cursor:
        end = hold(window, cursor)
        if end is None:
            return 0
        own = {**window.parameters(), "end": end}
        cursor.execute(statements.RELEASE, {**own, "keys": list(known), "organizations": list(known.values())})
        released: int = cursor.rowcount
        cursor.execute(statements.CHARGE, own)
        reach("consumption.release_before_commit")
    reach("consumption.released")
    return released
