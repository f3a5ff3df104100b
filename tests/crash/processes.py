"""Processes of the system as a test needs them: started, killed, stopped, and never left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.ground.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
SHORT_LEASE = {"OUTBOX_LEASE": "1", "OUTBOX_RENEW_EVERY": "0.3", "OUTBOX_FULL_SCAN_EVERY": "0.05"}
"""A lost lease is taken over within a second, so that a test need not wait for it."""
DISPATCH = ("-m", "tests.crash.worker", "dispatch", "--owner", "core", "--poll", "0.02")

_die_with_parent: Callable[[], None] | None = None
if sys.platform == "linux":
    import ctypes

    _LIBC = ctypes.CDLL(None)

    def _die_with_parent() -> None:
        _LIBC.prctl(1, int(signal.SIGKILL))


class Crew:
    """The processes of one test. `environment` is what they all get, beside the test's own."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self.environment = os.environ.copy() if environment is None else environment
        self._all: list[subprocess.Popen[str]] = []

    def start(self, arguments: Sequence[str], *, quiet: bool = False, **more: str) -> subprocess.Popen[str]:
        """Start Python with `arguments`; `more` adds to the environment. What a quiet one says is not kept."""
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**self.environment, **SHORT_LEASE, **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if quiet else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509  # one system call, loaded before
        )
        self._all.append(process)
        return process

    def dispatcher(self, *, quiet: bool = False, **more: str) -> subprocess.Popen[str]:
        """A dispatcher of core."""
        return self.start(DISPATCH, quiet=quiet, **more)

    def end(self) -> None:
        """Kill whatever still runs."""
        for process in self._all:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(BrokenPipeError):
                        stream.close()


def killed(process: subprocess.Popen[str]) -> None:
    """Wait until the process has died by kill -9, and fail with its output if it ended otherwise."""
    output, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, output


def drains_on_sigterm(process: subprocess.Popen[str]) -> bool:
    """Whether the process has come so far that it handles SIGTERM, or has ended."""
    if process.poll() is not None:
        return True
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught & 1 << (signal.SIGTERM - 1))


def ended(process: subprocess.Popen[str]) -> str:
    """SIGTERM, a clean exit, and everything it said."""
    until(lambda: drains_on_sigterm(process))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    return output


def stopped(process: subprocess.Popen[str]) -> None:
    """Wait until the process has stopped itself."""
    until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")


def reached(process: subprocess.Popen[str], step: str) -> None:
    """Wait until the process pauses at `step`."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == f"reached {step}":
            return
    raise AssertionError(f"the process ended before {step}")


def go_on(process: subprocess.Popen[str]) -> None:
    """Let a paused process continue."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
