"""Processes of the system as a test needs them: started, killed, stopped, and never left behind."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.ground.waiting import PATIENCE_SECONDS, until

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


class Process(subprocess.Popen[bytes]):
    """A process whose output goes into a file, so that it never waits for somebody to read it."""

    output: Path

    def said(self) -> str:
        """Everything it wrote so far."""
        return self.output.read_text(errors="replace")

    def await_text(self, text: str) -> None:
        """Wait until it wrote `text`; fail with all it wrote if it ended before."""
        until(lambda: text in self.said() or self.poll() is not None)
        assert text in self.said(), self.said()


class Crew:
    """The processes of one test. `environment` is what they all get, beside the test's own."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self.environment = os.environ.copy() if environment is None else environment
        self._outputs = Path(tempfile.mkdtemp(prefix="crew-"))
        self._all: list[Process] = []

    def start(self, arguments: Sequence[str], **more: str) -> Process:
        """Start Python with `arguments`; `more` adds to the environment."""
        output = self._outputs / str(len(self._all))
        with output.open("wb") as written:
            process = Process(
                [sys.executable, "-u", *arguments],
                cwd=ROOT,
                env={**self.environment, **SHORT_LEASE, **more},
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,  # one system call, loaded before
            )
        process.output = output
        self._all.append(process)
        return process

    def dispatcher(self, **more: str) -> Process:
        """A dispatcher of core."""
        return self.start(DISPATCH, **more)

    def end(self) -> None:
        """Kill whatever still runs."""
        for process in self._all:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()
        shutil.rmtree(self._outputs, ignore_errors=True)


def killed(process: Process) -> None:
    """Wait until the process has died by kill -9, and fail with its output if it ended otherwise."""
    process.wait(timeout=PATIENCE_SECONDS)
    assert process.returncode == -signal.SIGKILL, process.said()


def drains_on_sigterm(process: Process) -> bool:
    """Whether the process has come so far that it handles SIGTERM, or has ended."""
    if process.poll() is not None:
        return True
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught & 1 << (signal.SIGTERM - 1))


def ended(process: Process) -> str:
    """SIGTERM, a clean exit, and everything it said."""
    until(lambda: drains_on_sigterm(process))
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, process.said()
    return process.said()


def stopped(process: Process) -> None:
    """Wait until the process has stopped itself."""
    until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")


def reached(process: Process, step: str, *, times: int = 1) -> None:
    """Wait until the process pauses at `step`, for the `times`-th time."""
    until(lambda: process.said().count(f"reached {step}\n") >= times or process.poll() is not None)
    assert process.poll() is None, process.said()


def go_on(process: Process) -> None:
    """Let a paused process continue."""
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
