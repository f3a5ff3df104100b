"""Look at every owner's database at once, with a bound on the time and without one dead server hiding the others.

Each owner is looked at in a thread of its own, on a connection of its read role that is closed afterwards. A statement
may take as long as the patience. A server that never answers leaves a waiting thread behind; while `MAX_WAITING` of
them wait for one owner, nobody else is sent there.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper

from config.owners import Owner

T = TypeVar("T")

TIMED_OUT = "no answer in time"
MAX_WAITING = 4
"""Threads of this process that may wait for one owner: a scrape, a health check, and two whose caller gave up."""


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """What was found at one owner: a value, or in one line why not. The line can name host and role, no secret."""

    value: T | None
    problem: str | None


_threads: defaultdict[str, list[threading.Thread]] = defaultdict(list)
_lock = threading.Lock()


def look_at(
    owners: Sequence[Owner], look: Callable[[Owner, CursorWrapper], T], *, patience: float
) -> dict[str, Seen[T]]:
    """What `look` finds at each owner through its read role, by owner name, within about `patience` seconds."""
    return gather({owner.name: partial(_read, owner, look, patience) for owner in owners}, patience=patience)


def gather(looks: Mapping[str, Callable[[], T]], *, patience: float) -> dict[str, Seen[T]]:
    """Run all `looks` at once; each yields its value or its problem, and none waits for another."""
    deadline = time.monotonic() + patience + 1
    found: dict[str, Seen[T]] = {}
    for thread in [_start(name, look, found) for name, look in looks.items()]:
        if thread is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
    return {name: found.get(name, Seen(None, TIMED_OUT)) for name in looks}


def problem_of(error: Exception) -> str:
    """One line: the class of the error and the first line of its text."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"


def _start(name: str, look: Callable[[], T], found: dict[str, Seen[T]]) -> threading.Thread | None:
    def run() -> None:
        try:
            found[name] = Seen(look(), None)
        except Exception as error:  # what is wrong with one owner is told, and the others are still seen
            found[name] = Seen(None, problem_of(error))

    with _lock:
        _threads[name] = [thread for thread in _threads[name] if thread.is_alive()]
        if len(_threads[name]) >= MAX_WAITING:
            return None
        thread = threading.Thread(target=run, name=f"look-{name}", daemon=True)
        _threads[name].append(thread)
        thread.start()
    return thread


def _read(owner: Owner, look: Callable[[Owner, CursorWrapper], T], patience: float) -> T:
    alias = owner.read_alias
    try:
        # The setting ends with the transaction, so it reaches nobody else through a pooler.
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{patience * 1000:.0f}ms"])
            return look(owner, cursor)
    finally:
        connections[alias].close()
