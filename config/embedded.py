"""PostgreSQL and Valkey as children of this process, for development, demo and tests: no daemon, no installation.

One state directory has one owner process, decided by a lock on `embedded.lock`. The owner starts the servers and they
end with it, however it dies. Whoever else starts on the same directory joins: it gets the same `Services`, and its
`stop` stops nothing. Data stays in the directory from run to run.

Root may not run PostgreSQL, so as root the servers run as `nobody`. Where `nobody` cannot reach the project (a home
with mode 0700), binaries and data live under /var/lib, and `embedded.location` in the state directory says where.

It imports neither Django nor anything else of the project's apps, so that settings and tests may use it early.
"""

import json
import os
import pwd
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from config.locks import DirectoryLock
from config.private_file import write_private
from config.servers.place import Place, ServerFailed
from config.servers.postgres import PostgresServer
from config.servers.server import Server, accepts
from config.servers.valkey import ValkeyServer

JOIN_PATIENCE_SECONDS = 120.0
"""How long a joiner waits for the owner's servers; a crash recovery of a large database is the long case."""


class EmbeddedError(RuntimeError):
    """The embedded servers are not usable; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Services:
    """Where the two servers are. The PostgreSQL user is its administrator."""

    postgres_host: str
    postgres_port: int
    postgres_user: str
    postgres_password: str
    redis_url: str

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def state_dir() -> Path:
    """The state directory: `STATE_DIR`, or `.state` in the project."""
    return Path(os.environ.get("STATE_DIR", "").strip() or Path(__file__).parent.parent / ".state").resolve()


def running_services(state: Path) -> Services | None:
    """The servers that run on this state directory now, None if none do. What a killed owner left is not believed."""
    if not DirectoryLock(state / "embedded.lock").is_held():
        return None
    try:
        return Services.from_json((state / "services.json").read_text())
    except FileNotFoundError:
        return None


class Embedded:
    """The servers of one state directory, as a context manager. `None` as a port picks a free one.

    `start` must run in the main thread, because the servers end with the thread that starts them.
    """

    def __init__(self, *, state: Path, postgres_port: int | None = None, valkey_port: int | None = None) -> None:
        self.state = state.resolve()
        self.is_owner = False
        self._ports = (postgres_port, valkey_port)
        self._lock = DirectoryLock(self.state / "embedded.lock")
        self._servers: list[Server] = []

    def __enter__(self) -> Services:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Services:
        """Start both servers, or join those of the owner that already runs on this directory.

        Raises `EmbeddedError` (port taken, server refused to start, owner not ready in time); then nothing runs.
        """
        self.state.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + JOIN_PATIENCE_SECONDS
        while not self._lock.acquire():
            services = running_services(self.state)
            if services and accepts(services.postgres_port):
                return services
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"Process {self._lock.holder()} owns {self.state} but its servers are not ready after "
                    f"{JOIN_PATIENCE_SECONDS:.0f} s. Look into {self.state}/log, or stop that process."
                )
            time.sleep(0.05)
        self.is_owner = True
        try:
            return self._start_servers()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the servers if this process owns them, in reverse order and within bounds. Harmless when repeated."""
        if not self.is_owner:
            return
        with suppress(FileNotFoundError):
            (self.state / "services.json").unlink()
        while self._servers:
            self._servers.pop().stop()
        self.is_owner = False
        self._lock.release()

    def server_pids(self) -> dict[str, int]:
        """The process ids of the servers this process owns, for supervision and crash tests."""
        return {server.name: server.pid for server in self._servers}

    def revive(self) -> tuple[str, ...]:
        """Start every owned server that ended by itself again, on its port and data; their names, usually none."""
        failed = [server for server in self._servers if not server.is_running()]
        for server in failed:
            with _as_embedded_error():
                server.start(port=server.port)
        return tuple(server.name for server in failed)

    def _start_servers(self) -> Services:
        place = _place_for(self.state)
        postgres, valkey = PostgresServer(place=place), ValkeyServer(place=place)
        for server, port in zip((postgres, valkey), self._ports, strict=True):
            self._servers.append(server)
            with _as_embedded_error():
                server.start(port=port)
        services = Services(
            postgres_host="127.0.0.1",
            postgres_port=postgres.port,
            postgres_user="postgres",
            postgres_password=postgres.password,
            redis_url=f"redis://127.0.0.1:{valkey.port}/0",
        )
        write_private(self.state / "services.json", services.to_json())
        return services


@contextmanager
def _as_embedded_error() -> Iterator[None]:
    try:
        yield
    except (OSError, ServerFailed) as error:
        raise EmbeddedError(str(error)) from error


def _place_for(state: Path) -> Place:
    """Where data and binaries live, and as whom the servers run."""
    if os.geteuid() != 0:
        return Place(home=state, log=state / "log", user=None, group=None)
    nobody = pwd.getpwnam("nobody")
    here = Place(home=state, log=state / "log", user=nobody.pw_uid, group=nobody.pw_gid)
    if here.may_run(state):
        return here
    location = state / "embedded.location"
    if not location.exists():
        location.write_text(tempfile.mkdtemp(prefix="backbone-", dir="/var/lib"))
    home = Path(location.read_text().strip())
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o755)
    return replace(here, home=home)
