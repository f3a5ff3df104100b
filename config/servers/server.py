"""What both embedded servers share: a port, a child process, waiting until it answers, and an end within bounds."""

import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from config.processes import command_line, end, end_left_over, log_tail, spawn
from config.servers.place import Place, ServerFailed, clean_environment

START_SECONDS = 120.0
"""How long a server may recover before it must answer."""
_FAST_THEN_IMMEDIATE = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))
"""PostgreSQL: fast shutdown, then one that recovers at the next start. Valkey leaves at the first."""


_ADDRESS_IN_USE = "Address already in use"
_PASSING = (_ADDRESS_IN_USE, "pre-existing shared memory block")
"""Failures that pass: a picked port was taken before it was bound; backends of a killed server are still leaving."""


class PortTaken(ServerFailed):
    """The wanted port is in use. Permanent until another port is chosen or the other program ends."""


class Server(ABC):
    """What both servers share: a port, a child process, waiting until it answers, and an end within bounds."""

    name: ClassVar[str]
    advice: ClassVar[str]

    def __init__(self, *, place: Place) -> None:
        self.place = place
        self.port = 0
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._child.pid if self._child else 0

    @property
    def log(self) -> Path:
        return self.place.log / f"{self.name}.log"

    @abstractmethod
    def start(self, *, port: int | None) -> None:
        """Start on `port`, on a free one if None, and return when the server answers. Raises `ServerFailed`."""

    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def stop(self) -> None:
        if self._child is not None:
            end(self._child, steps=_FAST_THEN_IMMEDIATE)

    def _run_on(
        self, port: int | None, command: Callable[[int], list[str | Path]], answers: Callable[[], bool]
    ) -> None:
        """Start on `port`, or on a free one, and return when the server answers."""
        if port is not None and accepts(port):
            raise PortTaken(f"Port {port} for {self.name} is taken by another program. {self.advice}")
        deadline = time.monotonic() + START_SECONDS
        while True:
            self.port = port or free_port()
            before = self.log.stat().st_size if self.log.exists() else 0
            self._child = spawn(
                command=command(self.port),
                log=self.log,
                directory=self.place.home,
                environment=clean_environment(),
                parent_death=signal.SIGINT,
                user=self.place.user,
                group=self.place.group,
            )
            while self._child.poll() is None and time.monotonic() < deadline:
                if answers():
                    return
                time.sleep(0.02)
            written = log_tail(self.log, since=before)
            passing = [text for text in _PASSING if text in written and not (port and text == _ADDRESS_IN_USE)]
            if not passing or time.monotonic() > deadline:
                self.stop()
                raise ServerFailed(
                    f"{self.name} did not start on port {self.port}. Its log {self.log} ends with:\n{written}"
                )
            time.sleep(0.1)

    def _end_left_over(self, pid_file: Path, mark: Path) -> int | None:
        """End the server of a killed owner that still runs on this data; the number of a foreign process otherwise.

        Only the holder of the state directory's lock comes here, so a living server on this data is an orphan.
        """
        try:
            pid = int(pid_file.read_text().split()[0])
        except (FileNotFoundError, ValueError, IndexError):
            return None
        if end_left_over(pid=pid, mark=str(mark), steps=_FAST_THEN_IMMEDIATE):
            return None
        return pid if command_line(pid) else None


def accepts(port: int) -> bool:
    """Whether something listens on this port of the local machine."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of the local machine that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
