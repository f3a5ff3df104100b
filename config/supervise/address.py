"""Where the web server listens: chosen by `WEB_HOST` and `WEB_PORT`, and proven free before anything starts."""

import socket
from dataclasses import dataclass

import psutil

from config import environment
from config.supervise.refused import Refused


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Where the web server listens, and how a browser on this machine reaches it."""

    host: str
    port: int

    @property
    def url(self) -> str:
        near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  (compared, not bound)
        return f"http://{f'[{near}]' if ':' in near else near}:{self.port}"


def choose_web_address() -> WebAddress:
    """`WEB_HOST` and `WEB_PORT`, proven free now; port 0 picks a free one. Raises `Refused`."""
    host, wanted = environment.text("WEB_HOST", "127.0.0.1"), environment.integer("WEB_PORT", 8000, low=0, high=65535)
    return prove_free(WebAddress(host=host, port=wanted))


def prove_free(address: WebAddress) -> WebAddress:
    """The address, nobody listening there now; a free port in place of 0. Raises `Refused`."""
    host, wanted = address.host, address.port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted))
        except OSError as error:
            raise Refused(
                f"The web server cannot listen on {host}, port {wanted}: {error.strerror}.\n"
                f"End the program that uses it, or choose another port: WEB_PORT=8001 make up"
            ) from None
        return WebAddress(host=host, port=int(probe.getsockname()[1]))


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
