"""Waiting for what must happen, bounded: a test that waits in vain fails and says for what."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 60.0


def until(condition: Callable[[], object], *, patience: float = PATIENCE_SECONDS) -> None:
    """Return as soon as `condition` is true."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience:.0f} s: {condition}"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether the process has ended; one that waits to be reaped has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in {"Z", "X"}
