"""Keeps the programs running: starts, restarts, gives up on what cannot live, stops all within bounds.

A program that ends by itself is started again after 1, 2, 4 … 30 seconds. One that lived less than ten seconds, five
times in a row, cannot live: everything is stopped and the end of its log is shown. A program killed from outside
(SIGKILL: an operator, the out-of-memory killer) is started again after half a second, and that never counts.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.processes import end, kill_session, log_tail, spawn
from config.supervise.programs import Program

STOP_STEPS = ((signal.SIGTERM, 20.0), (signal.SIGQUIT, 5.0))
"""A worker finishes what is in work, then drops it, then is killed: 25 seconds at the very most."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When a program that ended is started again, in seconds, and when it is given up."""

    first_delay: float = 1.0
    longest_delay: float = 30.0
    after_kill: float = 0.5
    long_enough: float = 10.0
    """A program that lived this long was able to live."""
    short_lives: int = 5
    """So many lives in a row that were not long enough are the last."""


class CannotLive(RuntimeError):
    """A program ended again and again soon after its start. The last lines of its log say why."""


@dataclass(slots=True)
class Running:
    """One program with its present process, or with the time at which it is due again."""

    program: Program
    child: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    due: float = 0.0
    short_lives: int = 0


class Watch:
    """Supervises `programs`; `report` receives one line for everything an operator should know."""

    def __init__(
        self,
        *,
        programs: Sequence[Program],
        directory: Path,
        log: Path,
        environment: Mapping[str, str],
        report: Callable[[str], None],
        patience: Patience = Patience(),
    ) -> None:
        self._running = [Running(program) for program in programs]
        self._directory = directory
        self._log = log
        self._environment = environment
        self._report = report
        self._patience = patience

    def start(self) -> None:
        """Start every program, in order."""
        for running in self._running:
            self._start(running)

    def look(self) -> None:
        """Notice what ended and start what is due. Raises `CannotLive`."""
        now = time.monotonic()
        for running in self._running:
            if running.child is not None and running.child.poll() is not None:
                self._ended(running, running.child, now)
            if running.child is None and now >= running.due:
                self._start(running)

    def stop(self, *, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop everything in reverse order, within `STOP_STEPS` each; at once as soon as `hurry` says so."""
        for running in reversed(self._running):
            if running.child is not None:
                end(running.child, steps=() if hurry() else STOP_STEPS, hurry=hurry)
                kill_session(running.child.pid)
                running.child = None

    def pids(self) -> dict[str, int]:
        """The process of every program that runs now."""
        return {running.program.name: running.child.pid for running in self._running if running.child is not None}

    def log_of(self, name: str) -> Path:
        """The log of one program."""
        return self._log / f"{name}.log"

    def _start(self, running: Running) -> None:
        running.child = spawn(
            command=running.program.command,
            log=self.log_of(running.program.name),
            directory=self._directory,
            environment=self._environment,
            parent_death=running.program.on_parent_death,
        )
        running.started = time.monotonic()

    def _ended(self, running: Running, child: subprocess.Popen[bytes], now: float) -> None:
        name, code = running.program.name, child.returncode
        kill_session(child.pid)
        running.child = None
        if code == -signal.SIGKILL:
            running.due = now + self._patience.after_kill
            self._report(f"{name} was killed; it starts again.")
            return
        lived_long = now - running.started >= self._patience.long_enough
        running.short_lives = 0 if lived_long else running.short_lives + 1
        if running.short_lives >= self._patience.short_lives:
            raise CannotLive(
                f"{name} ended {running.short_lives} times in a row within {self._patience.long_enough:.0f} s of its "
                f"start, at last with code {code}. Its log {self.log_of(name)} ends with:\n"
                f"{log_tail(self.log_of(name))}"
            )
        delay = min(self._patience.first_delay * 2.0 ** max(0, running.short_lives - 1), self._patience.longest_delay)
        running.due = now + delay
        self._report(f"{name} ended with code {code}; it starts again in {delay:.0f} s. See {self.log_of(name)}.")
