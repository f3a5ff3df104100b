"""Refuse a body before it is read: too large for its address, or an upload by nobody that is known.

Django's ASGI handler takes a body whole, into memory and then onto the disk, before a view runs. So this stands in
front of it: a length that is announced is believed, what comes is counted and timed, and who sends a large body shows
first who they are. What lets an upload through here is looked at again by the door of its view.
"""

import asyncio
import errno
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpResponse

from attachments.connectors import metrics as connectors
from attachments.http.known import is_known
from attachments.http.problems import Kind, problem
from attachments.http.refusals import NO_CREDENTIAL

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

OURS = re.compile(r"/api/v1/(claims|connectors|me)(/|$)")
EVENTS = re.compile(r"/api/v1/connectors/[^/]+/events")
UPLOADS = re.compile(r"/api/v1/claims/[^/]+/items/[^/]+/attachments(/[^/]+)?")
LARGEST_REQUEST_BYTES = 64 * 1024
"""Of every body that is neither upload nor event; and an upload of this size is read before its sender is known."""
FORM_BYTES = 16 * 1024
"""What the multipart form around one file may take."""
SLOW = "The rest of the body did not come. Nothing was touched; repeat the same request."
NO_ROOM = "There is no room to receive the body now. Nothing was touched; repeat the same request."


class BoundedBodies:
    """An ASGI application around another one."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not OURS.match(scope["path"]):
            await self._application(scope, receive, send)
            return
        is_upload = scope["method"] in {"POST", "PUT"} and UPLOADS.fullmatch(scope["path"])
        largest = _largest(scope["path"], is_upload=bool(is_upload))
        headers = dict(scope["headers"])
        announced = _length(headers)
        if announced is not None and announced > largest:
            await _answer(send, _too_large(scope["path"], largest))
            return
        if is_upload and (announced is None or announced > LARGEST_REQUEST_BYTES):
            refusal = await sync_to_async(_refusal_of, thread_sensitive=False)(headers)
            if refusal is not None:
                await _answer(send, refusal)
                return
        await self._bounded(scope, receive, send, largest)

    async def _bounded(self, scope: Message, receive: Receive, send: Send, largest: int) -> None:
        counted, sent = _Counted(receive, largest), _Sent(send)
        try:
            await self._application(scope, counted.receive, sent.send)
        except OSError as error:
            if sent.has_begun or error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            await _answer(send, problem(Kind.UNAVAILABLE, NO_ROOM))
            return
        if counted.refusal is not None and not sent.has_begun:
            is_slow = counted.refusal is Kind.TOO_SLOW
            await _answer(send, problem(Kind.TOO_SLOW, SLOW) if is_slow else _too_large(scope["path"], largest))


class _Counted:
    """Looks to the application as if the client had gone, once a byte beyond the bound came, or none in time."""

    def __init__(self, receive: Receive, largest: int) -> None:
        self._receive = receive
        self._left = largest
        self._is_whole = False
        self.refusal: Kind | None = None

    async def receive(self) -> Message:
        if self.refusal is None:
            message = await self._next()
            self._left -= len(message.get("body", b""))
            self._is_whole = self._is_whole or not message.get("more_body", False)
            if self._left < 0:
                self.refusal = Kind.TOO_LARGE
        return {"type": "http.disconnect"} if self.refusal else message

    async def _next(self) -> Message:
        """What comes after the body, which is that the client goes, may take as long as the answer does."""
        if self._is_whole:
            return await self._receive()
        try:
            return await asyncio.wait_for(self._receive(), settings.API_BODY_TIMEOUT)
        except TimeoutError:
            self.refusal = Kind.TOO_SLOW
            return {"type": "http.disconnect"}


class _Sent:
    """Notes whether an answer was begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def send(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


def _length(headers: dict[bytes, bytes]) -> int | None:
    """What is announced, None if nothing is, as in a chunked body."""
    length = headers.get(b"content-length", b"")
    return int(length) if length.isdigit() and len(length) < len(str(2**63)) else None


def _refusal_of(headers: dict[bytes, bytes]) -> HttpResponse | None:
    known = is_known(headers)
    if known is None:
        return problem(Kind.UNAVAILABLE, "Who you are cannot be looked up now. Nothing was touched; repeat.")
    return None if known else problem(Kind.NOT_AUTHENTICATED, NO_CREDENTIAL)


def _largest(path: str, *, is_upload: bool) -> int:
    """Bytes that a body may have at this address."""
    if is_upload:
        return int(settings.ATTACHMENTS_LARGEST_BYTES) + FORM_BYTES
    return int(settings.CONNECTOR_MAX_BODY_BYTES) if EVENTS.fullmatch(path) else LARGEST_REQUEST_BYTES


def _too_large(path: str, largest: int) -> HttpResponse:
    if EVENTS.fullmatch(path):
        connectors.answered(connectors.Answered.TOO_LARGE)
    return problem(Kind.TOO_LARGE, f"A body may have {largest} bytes here.")


async def _answer(send: Send, answer: HttpResponse) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
