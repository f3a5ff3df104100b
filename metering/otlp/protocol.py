"""uvicorn's HTTP protocol with bounds that it lacks: on the time and size of a request's head, and on all its bytes."""

import asyncio
from typing import Any

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from metering.otlp.body import MAX_BODY_BYTES

MAX_HEAD_BYTES = 64 * 1024
MAX_RAW_BYTES = 4 * MAX_BODY_BYTES
"""Of one request with all that chunks add to it, trailers included; chunks of real clients have a kilobyte or more."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose head does not come in time, or whose bytes do not end."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._raw = 0
        self._in_head = True
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        self._raw += len(data)
        super().data_received(data)
        if self._raw > (MAX_HEAD_BYTES + len(data) if self._in_head else MAX_RAW_BYTES):
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._forget_deadline()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._raw = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._in_head = True
        if self._deadline is None:
            self._deadline = self.loop.call_later(settings.OTLP_HEADER_TIMEOUT, self.timeout_keep_alive_handler)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
