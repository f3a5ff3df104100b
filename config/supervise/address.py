"""Where the servers of this machine listen: chosen by the environment, and proven free before anything starts."""

import socket
from dataclasses import dataclass, replace

import psutil

from config import environment
from config.supervise.refused import Refused


@dataclass(frozen=True, slots=True)
class Address:
    """Where one program of the Procfile listens, and how this machine reaches it."""

    program: str
    """Its name in the Procfile."""
    title: str
    host: str
    port: int
    move: str
    """The setting that moves it elsewhere, as a person writes it."""

    @property
    def url(self) -> str:
        near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  (compared, not bound)
        return f"http://{f'[{near}]' if ':' in near else near}:{self.port}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Of every program that listens."""

    web: Address
    receiver: Address

    @property
    def all(self) -> tuple[Address, ...]:
        """In the order in which they are looked at."""
        return self.web, self.receiver


def choose_addresses() -> Addresses:
    """What `WEB_HOST`, `WEB_PORT`, `OTLP_HOST`, `OTLP_PORT` say, proven free; port 0 picks one. Raises `Refused`."""
    web = Address(
        program="web",
        title="web server",
        host=environment.text("WEB_HOST", "127.0.0.1"),
        port=environment.integer("WEB_PORT", 8000, low=0, high=65535),
        move="WEB_PORT=8001",
    )
    receiver = Address(
        program="otlp",
        title="OTLP receiver",
        host=environment.text("OTLP_HOST", "127.0.0.1"),
        port=environment.integer("OTLP_PORT", 4318, low=0, high=65535),
        move="OTLP_PORT=4319",
    )
    return Addresses(web=prove_free(web), receiver=prove_free(receiver))


def prove_free(address: Address) -> Address:
    """The address, nobody listening there now; a free port in place of 0. Raises `Refused`."""
    with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            raise Refused(
                f"The {address.title} cannot listen on {address.host}, port {address.port}: {error.strerror}.\n"
                f"End the program that uses it, or choose another port: {address.move} make up"
            ) from None
        return replace(address, port=int(probe.getsockname()[1]))


def listens(pid: int, port: int) -> bool:
    """Whether this process or a descendant of it listens on `port`: nobody else's answer may be taken for ours."""
    try:
        parent = psutil.Process(pid)
        return any(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for process in (parent, *parent.children(recursive=True))
            for connection in process.net_connections("tcp")
        )
    except psutil.Error:
        return False
