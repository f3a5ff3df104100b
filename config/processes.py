"""Child processes that cannot outlive their parent, and the end of those that a killed parent left behind.

On Linux the kernel signals a child when the thread that started it ends (PR_SET_PDEATHSIG), also when the parent dies
by kill -9. Elsewhere a killed parent leaves its children; the next start ends them (`end_left_over`).
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

LOG_LIMIT_BYTES = 10 * 1024 * 1024
"""A log beyond this is put aside as `<name>.1` at the next start, so that logs never fill the disk over months."""

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class NotMainThread(RuntimeError):
    """Children are started from the main thread only, because they end with the thread that started them."""


def spawn(
    *,
    command: Sequence[str | Path],
    log: Path,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    parent_death: signal.Signals = signal.SIGTERM,
    user: int | None = None,
    group: int | None = None,
    errors_to_terminal: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `command` in its own session, its output appended to `log`; `parent_death` reaches it if this process dies.

    With `errors_to_terminal` its standard error, such as a progress bar, goes where this process's goes.

    Raises `NotMainThread` outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise NotMainThread(NotMainThread.__doc__)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603  (the caller's constants)
            [str(part) for part in command],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=None if errors_to_terminal else subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with(os.getpid(), parent_death),  # noqa: PLW1509  (two system calls, loaded before)
            user=user,
            group=group,
            extra_groups=None if user is None else [],
        )


def die_with(parent: int, wanted: signal.Signals) -> Callable[[], None] | None:
    """What a fresh child calls so that `wanted` reaches it when its parent dies; None where the system has no such."""
    libc = _LIBC
    if libc is None:
        return None

    def bind_to_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(wanted))
        if os.getppid() != parent:
            os._exit(1)

    return bind_to_parent


def end(
    child: subprocess.Popen[bytes],
    *,
    steps: Sequence[tuple[signal.Signals, float]],
    hurry: Callable[[], bool] = lambda: False,
) -> int:
    """Send each signal in turn, give the child its seconds, and kill its whole session at last. Returns its code.

    As soon as `hurry` says so, the patience is over and the rest of the steps is skipped.
    """
    for wanted, patience in steps:
        if child.poll() is not None or hurry():
            break
        child.send_signal(wanted)
        deadline = time.monotonic() + patience
        while child.poll() is None and time.monotonic() < deadline and not hurry():
            time.sleep(0.02)
    if child.poll() is None:
        kill_session(child.pid)
    return child.wait()


def kill_session(leader: int) -> None:
    """Kill what is left of the process group that `spawn` made for this child; nothing left is no error."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def end_left_over(*, pid: int, mark: str, steps: Sequence[tuple[signal.Signals, float]]) -> bool:
    """End process `pid` if its command line still holds `mark`; True if it was such a process and is gone now.

    Another process that merely got the same number is left alone. It can be wrong only where a foreign command
    line names the same directory, which no server but our own does.
    """
    if mark not in command_line(pid):
        return False
    for wanted, patience in (*steps, (signal.SIGKILL, 5.0)):
        os.kill(pid, wanted)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if mark not in command_line(pid):
                return True
            time.sleep(0.05)
    return False


def command_line(pid: int) -> str:
    """The command line of a running process with single spaces, empty if there is no such process."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    ps = ["/bin/ps", "-p", str(pid), "-o", "args="]
    listed = subprocess.run(ps, capture_output=True, text=True, check=False)  # noqa: S603  (a fixed command)
    return listed.stdout


def log_tail(log: Path, *, lines: int = 20, since: int = 0) -> str:
    """The last lines of a log, none from before byte `since`; empty if there is no log."""
    if not log.exists():
        return ""
    size = log.stat().st_size
    with log.open("rb") as stream:
        stream.seek(max(since if since <= size else 0, size - 64 * 1024))
        return "\n".join(stream.read().decode(errors="replace").splitlines()[-lines:])
