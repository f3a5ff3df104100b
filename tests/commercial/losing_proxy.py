"""A wire to PostgreSQL that loses one COMMIT: the request on its way there, or the answer on its way back."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any

import pytest
from django.db import connections

CHUNK = 65_536


class Lost(Enum):
    """What never arrives."""

    REQUEST = "request"
    """The server does not see the COMMIT; it rolls back when its client is gone."""
    ANSWER = "answer"
    """The server commits; its client never learns."""


class LosingProxy:
    """Forwards bytes. Once `armed`, the next COMMIT ends the connection as `armed` says; `shut` refuses new ones."""

    def __init__(self, host: str, port: int) -> None:
        self.armed: Lost | None = None
        self._target = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """Accept nobody any more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                threading.Thread(target=self._to_server, args=(client, server), daemon=True).start()
                threading.Thread(target=self._to_client, args=(client, server), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK):
                if self.armed is Lost.REQUEST and b"COMMIT" in data:
                    break
                server.sendall(data)
        _close(client, server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                if self.armed is Lost.ANSWER and b"COMMIT" in data:
                    break
                client.sendall(data)
        _close(client, server)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextmanager
def through_proxy(alias: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LosingProxy]:
    """This thread's connection of `alias` goes through a proxy meanwhile."""
    connection: Any = connections[alias]
    connection.close()
    proxy = LosingProxy(connection.settings_dict["HOST"], int(connection.settings_dict["PORT"]))
    with monkeypatch.context() as patched:
        patched.setitem(connection.settings_dict, "PORT", proxy.port)
        try:
            yield proxy
        finally:
            connection.close()
            proxy.shut()
