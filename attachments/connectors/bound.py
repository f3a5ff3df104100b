"""Refuse a body that is too large while it is on its way, before anything keeps it.

Django's ASGI handler takes a body whole, into memory and then onto the disk, before a view runs. So this stands in
front of it for the addresses of connectors: a length that is announced is believed, and what comes is counted.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings

from attachments.connectors import metrics
from attachments.connectors.metrics import Answered
from attachments.http.problems import Kind, problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
PLACE = "/api/v1/connectors/"


class BoundedBodies:
    """An ASGI application around another one."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PLACE):
            await self._application(scope, receive, send)
            return
        counted = _Counted(receive)
        if _announced(scope) > largest_body():
            counted.is_too_large = True
        else:
            await self._application(scope, counted.receive, send)
        if counted.is_too_large:
            await _refuse(send)


class _Counted:
    """Looks to the application as if the client had gone, from the first byte beyond the bound on."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._bytes = 0
        self.is_too_large = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._bytes += len(message.get("body", b""))
        self.is_too_large = self.is_too_large or self._bytes > largest_body()
        return {"type": "http.disconnect"} if self.is_too_large else message


def largest_body() -> int:
    """Bytes that an event may have."""
    largest: int = settings.CONNECTOR_MAX_BODY_BYTES
    return largest


def _announced(scope: Message) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0


async def _refuse(send: Send) -> None:
    metrics.answered(Answered.TOO_LARGE)
    answer = problem(Kind.TOO_LARGE, f"An event may have {largest_body()} bytes.")
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
