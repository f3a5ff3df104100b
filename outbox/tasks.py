"""Celery entry points: translate, call once, answer."""

import time
from typing import Any

from celery import shared_task
from django.conf import settings

from config.owners import owner_named
from outbox.dispatch import Dispatcher
from outbox.nudge import nudge, take_up


@shared_task(name="outbox.dispatch", ignore_result=True)
def dispatch(owner_name: str) -> dict[str, Any]:
    """Drain one owner's outbox for at most `OUTBOX_SLICE` seconds, on the owner's queue; twice at once is harmless."""
    take_up(owner_name)
    until = time.monotonic() + settings.OUTBOX_SLICE
    with Dispatcher(owner_named(owner_name)) as dispatcher:
        drained = dispatcher.drain(until=until)
    if time.monotonic() >= until:
        nudge(owner_name)
    return {"acknowledged": drained.acknowledged, "quarantined": drained.quarantined}
