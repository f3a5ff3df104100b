"""The wake-up after a commit: one coalesced message per owner, never a reason for a commit to fail.

A key with a short life stands for every commit until a worker takes it up; it is set only if absent, so a burst of
commits sends one message. Sockets time out quickly, nothing is retried: the beat finds what a lost one leaves behind.
"""

import os
import threading
from collections.abc import Callable
from functools import cache
from typing import cast

import redis
import structlog
from django.conf import settings
from django.db import connections, transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from config.owners import owner_of_alias
from outbox import metrics

log = structlog.get_logger("outbox.nudge")

SOCKET_TIMEOUT_SECONDS = 0.25
"""A commit waits no longer than this for a broker that does not answer."""


def nudge_after_commit(*, using: str) -> None:
    """Wake the owner's dispatcher once this transaction commits; a rollback wakes nobody."""
    callback = _callback(using)
    if any(entry[1] is callback for entry in connections[using].run_on_commit):
        return
    transaction.on_commit(callback, using=using, robust=True)


@cache
def _callback(using: str) -> Callable[[], None]:
    owner = owner_of_alias(using).name

    def wake() -> None:
        nudge(owner)

    return wake


def nudge(owner: str) -> bool:
    """Send the owner's wake-up unless one is under way. True if a message was sent; a failing broker is only logged."""
    try:
        if not _first(owner):
            metrics.nudges(owner, "coalesced")
            return False
        _send(owner)
    except Exception as error:  # the commit stands; whatever the broker says must not reach the business code
        metrics.nudges(owner, "failed")
        log.warning("nudge_failed", owner=owner, error_class=type(error).__name__)
        return False
    metrics.nudges(owner, "sent")
    return True


def take_up(owner: str) -> None:
    """Called by a dispatcher before it looks for work: the next commit may send a wake-up again."""
    try:
        _client().delete(_key(owner))
    except redis.RedisError as error:
        log.warning("nudge_not_cleared", owner=owner, error_class=type(error).__name__)


def _key(owner: str) -> str:
    return f"backbone:nudge:{owner}"


def _first(owner: str) -> bool:
    """Set the key unless it stands. The command is packed once: this runs after every commit that appends."""
    connection = _connection()
    for last in (False, True):
        try:
            connection.send_packed_command(_packed(owner), check_health=False)  # type: ignore[no-untyped-call]  # redis-py does not type it
            return connection.read_response() is not None
        except redis.ConnectionError:
            # A kept connection may have died with the broker's last life. A fresh one says whether there is a new life.
            connection.disconnect()  # type: ignore[no-untyped-call]  # redis-py does not type it
            if last:
                raise
        except BaseException:
            connection.disconnect()  # type: ignore[no-untyped-call]  # redis-py does not type it
            raise
    raise AssertionError("both attempts return or raise")


@cache
def _packed(owner: str) -> list[bytes]:
    life = int(settings.OUTBOX_NUDGE_LIFE * 1000)
    command = ("SET", _key(owner), 1, "NX", "PX", life)
    return list(_client().connection_pool.make_connection().pack_command(*command))  # type: ignore[no-untyped-call]  # redis-py does not type it


def _connection() -> redis.Connection:
    """This thread's own connection in this process; a forked child never speaks on its parent's."""
    asked = (os.getpid(), _client())
    if getattr(_local, "of", None) != asked:
        _local.of, _local.connection = asked, asked[1].connection_pool.make_connection()
    return cast("redis.Connection", _local.connection)


_local = threading.local()


@cache
def _client() -> "redis.Redis":
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )


def _send(owner: str) -> None:
    from outbox.tasks import dispatch

    dispatch.apply_async(
        (owner,), queue=_queue(owner), retry=False, expires=settings.OUTBOX_BEAT_EVERY * 4, ignore_result=True
    )


def _queue(owner: str) -> str:
    from config.owners import owner_named

    return owner_named(owner).queue
