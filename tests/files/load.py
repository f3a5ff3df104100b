"""Uploads, replacements and deletions without end, some of them rolled back, by a process that somebody will kill.

Several such processes at once change the papers of a few claims; what is refused to one of them because another one is
at work with it is given up, and the next change is tried.
"""

import os
import random
import signal
from contextlib import suppress

from django.db import connections

from attachments.files.errors import PathInFlight
from attachments.files.path import StoredPath
from billing.commercial.hooks import InFlight, ReservationLost, business_transaction
from tests.files.papers import ALIAS, Interrupted, fail, path_of, remove, write

CLAIMS, ITEMS, NAMES = ("c1", "c2", "c3"), ("i1", "i2"), ("a", "b", "c")


class Load:
    """One process under load."""

    def __init__(self, tenant_id: str, seed: float) -> None:
        connections.close_all()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                work(tenant_id, random.Random(seed))
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(1)

    def kill(self) -> None:
        """kill -9; it must not have ended by itself."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        assert os.WIFSIGNALED(status), "it ended by itself"


def work(tenant_id: str, chance: random.Random) -> None:
    """Change papers until killed."""
    while True:
        with suppress(Interrupted, PathInFlight, InFlight, ReservationLost):
            if chance.random() < 0.3:
                change_several(tenant_id, chance)
            else:
                change(tenant_id, chance)


def change(tenant_id: str, chance: random.Random) -> None:
    """One paper written, or one paper, all of an item, or all of a claim removed."""
    name, item, claim = chance.choice(NAMES), chance.choice(ITEMS), chance.choice(CLAIMS)
    then = fail if chance.random() < 0.2 else None
    kind = chance.random()
    if kind < 0.7:
        body = chance.randbytes(chance.choice((0, 10, 1000, 100_000)))
        write(name, body, item=item, claim=claim, tenant_id=tenant_id, then=then)
    else:
        ids = path_of(name, item=item, claim=claim).ids
        remove(StoredPath(ids[: 4 if kind < 0.85 else 3 if kind < 0.96 else 2]), then=then)


def change_several(tenant_id: str, chance: random.Random) -> None:
    """A few changes in one transaction, each in a savepoint of its own."""
    with business_transaction(using=ALIAS):
        for _ in range(chance.randint(2, 4)):
            with suppress(Interrupted):
                change(tenant_id, chance)
        if chance.random() < 0.3:
            raise Interrupted
