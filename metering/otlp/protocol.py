"""uvicorn's HTTP protocol with bounds that it lacks, on the time and size of a request's head and on all its bytes, and
without upgrades.

A client may offer to go on in another protocol, as Java's offers HTTP/2 with its first request; a server that does not
take it answers as if nothing had been offered (RFC 9110, 7.8). The parser instead ends the request at its head, so
the offer is taken out before it sees it.
"""

import asyncio
import re
from typing import Any

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from metering.otlp.body import MAX_BODY_BYTES

MAX_HEAD_BYTES = 64 * 1024
MAX_RAW_BYTES = 4 * MAX_BODY_BYTES
"""Of one request with all that chunks add to it, trailers included; chunks of real clients have a kilobyte or more."""

OFFER = re.compile(rb"(?i)\r\nupgrade:[^\r\n]*")


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose head does not come in time, or whose bytes do not end."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._raw = 0
        self._in_head = True
        self._begins = True
        """Whether what comes next is the head of a request."""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        self._raw += len(data)
        super().data_received(_without_offer(data) if self._begins else data)
        if self._raw > (MAX_HEAD_BYTES + len(data) if self._in_head else MAX_RAW_BYTES):
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._in_head = self._begins = False
        self._forget_deadline()
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            # The offer came in pieces, and the body would be lost: the client shall send it all again.
            self.transport.abort()
            return
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._raw = 0
        self._begins = True
        if not self.transport.is_closing():
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


def _without_offer(data: bytes) -> bytes:
    """The first bytes of a request without the `Upgrade` header that stands in them."""
    head, divider, rest = data.partition(b"\r\n\r\n")
    return OFFER.sub(b"", head) + divider + rest
