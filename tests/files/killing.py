"""Processes that kill themselves with -9 at a named step, and what is found after everything was swept."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from django.db import connections

from attachments.files.sweep import Swept, sweep
from billing.commercial.sweep import sweep as sweep_quota
from outbox import steps
from tests.commercial.make import used_and_held
from tests.files.papers import ALIAS, Interrupted, on_disk, rows


def killed_at(step: str, call: Callable[[], object]) -> None:
    """Run `call` in a process of its own, which is killed with -9 when it reaches the step."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            steps.hook = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == step else None
            call()
        except Interrupted:
            os._exit(3)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(4)
        os._exit(5)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"it ended by itself with {os.waitstatus_to_exitcode(status)}"
    assert os.WTERMSIG(status) == signal.SIGKILL


def sweep_all() -> Swept:
    """Sweep the tree until the server has noticed that its clients are gone, then quota once; what was found."""
    found = Swept()
    while True:
        now = sweep()
        found = Swept(
            kept=found.kept + now.kept,
            undone=found.undone + now.undone,
            failed=found.failed + now.failed,
            incoming=found.incoming + now.incoming,
        )
        if not now.live:
            break
    while sweep_quota(business=ALIAS, held_for=timedelta(0)).live:
        pass
    return found


def committed_bytes() -> int:
    """The bytes of every write that committed."""
    with connections["attachments.read"].cursor() as cursor:
        cursor.execute("SELECT coalesce(sum(size), 0)::bigint FROM test_writes")
        return int(cursor.fetchone()[0])


def prove(root: Path) -> None:
    """Database and tree agree byte for byte, nothing is held, usage is what was committed, no intent is open."""
    assert on_disk(root) == rows()
    assert used_and_held() == (committed_bytes(), 0)
    with connections["attachments.read"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM staged_file_intents WHERE state = 'open'")
        assert cursor.fetchone() == (0,)
