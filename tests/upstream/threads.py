"""Threads with connections of their own, and the named steps at which one of them stops."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connections

from outbox import steps

T = TypeVar("T")
PATIENCE_SECONDS = 60
"""After this a test that waits for another thread gives up."""


def in_threads(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run all of them at once and return their answers, in order."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        barrier.wait(PATIENCE_SECONDS)
        try:
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(PATIENCE_SECONDS) for future in [pool.submit(run, call) for call in calls]]


class Stopped:
    """A call that stands at its step until `go_on`."""

    def __init__(self, future: "Future[object]", released: threading.Event) -> None:
        self._future, self._released = future, released

    def go_on(self) -> object:
        """Let it run to its end and return its answer."""
        self._released.set()
        return self._future.result(PATIENCE_SECONDS)


@contextmanager
def stopped_at(step: str, call: Callable[[], object]) -> Iterator[Stopped]:
    """Run `call` in a thread of its own up to the step."""
    reached, released = threading.Event(), threading.Event()
    name = f"stopped-at-{step}"

    def hook(at: str) -> None:
        if at == step and threading.current_thread().name == name:
            reached.set()
            released.wait(PATIENCE_SECONDS)

    def run() -> object:
        threading.current_thread().name = name
        try:
            return call()
        finally:
            connections.close_all()

    steps.hook = hook
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        try:
            assert reached.wait(PATIENCE_SECONDS)
            yield Stopped(future, released)
        finally:
            released.set()
            future.exception(PATIENCE_SECONDS)
            steps.hook = None


def wait_until_somebody_waits_for_a_lock(alias: str) -> None:
    """Return once a transaction is blocked by another one. A view that every role may read says so."""
    until = time.monotonic() + PATIENCE_SECONDS
    with connections[alias].cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
            if cursor.fetchone()[0]:
                return
    raise AssertionError("Nobody waits for a lock.")
