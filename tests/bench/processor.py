"""Processor time that the database server used: unlike a rate, it hardly depends on what else the machine does.

Linux only; elsewhere nothing is known and nothing is reported.
"""

import os
from pathlib import Path

from tests.bench import ground

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


def used_by_server() -> float | None:
    """Seconds of processor time of the server and all its processes so far, those that ended included."""
    if not PROC.is_dir():
        return None
    with ground.administrator() as server:
        row = server.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        parent = _stat(row[0])[1]
    ended = sum(_stat(parent)[11:15])
    living = sum(sum(_stat(pid)[11:13]) for pid in _children(parent))
    return (ended + living) / TICKS


def _stat(pid: int) -> list[int]:
    """The numeric fields of /proc/<pid>/stat from the third (state, as 0) on."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(") ")[2].split()
    except FileNotFoundError:
        return [0] * 20
    return [0, *(int(field) for field in fields[1:20])]


def _children(parent: int) -> list[int]:
    pids = (int(path.name) for path in PROC.iterdir() if path.name.isdigit())
    return [pid for pid in pids if _stat(pid)[1] == parent]
