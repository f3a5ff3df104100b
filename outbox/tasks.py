"""Celery entry points: translate, call once, answer."""

import threading
import time

from celery import shared_task
from django.conf import settings

from config.owners import owner_named
from outbox.dispatch import Dispatcher
from outbox.nudge import nudge, take_up

_workers = threading.local()
"""One dispatcher per owner and thread, kept from task to task: its marks and its heartbeat stay warm."""


def _dispatcher(owner_name: str) -> Dispatcher:
    kept: dict[str, Dispatcher] = _workers.__dict__.setdefault("dispatchers", {})
    if owner_name not in kept:
        kept[owner_name] = Dispatcher(owner_named(owner_name)).__enter__()
    return kept[owner_name]


@shared_task(name="outbox.dispatch", ignore_result=True)
def dispatch(owner_name: str) -> int:
    """Drain one owner's outbox for at most `OUTBOX_SLICE` seconds, on the owner's queue; twice at once is harmless."""
    take_up(owner_name)
    until = time.monotonic() + settings.OUTBOX_SLICE
    drained = _dispatcher(owner_name).drain(until=until)
    if time.monotonic() >= until:
        nudge(owner_name)
    return drained.acknowledged
