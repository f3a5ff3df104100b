"""Read a request's body under bounds on its size and its time, and never hold many large ones (T1, T2, T14).

A body above `SMALL` first gets one of a few places, so that the memory of a process does not grow with the number of
senders; whoever waits for a place is not read from, and keeps the data in its own socket.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

MAX_BODY_BYTES = 8 * 1024 * 1024
"""On the wire, by the contract."""
SMALL = 256 * 1024

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class BodyTooLarge(Exception):
    """More than `MAX_BODY_BYTES` came, or were announced."""


class BodyTooSlow(Exception):
    """The body was not complete in time."""


class NoPlace(Exception):
    """All places for large bodies were taken for too long."""


class Disconnected(Exception):
    """The client left before its body was complete."""


@asynccontextmanager
async def body_of(
    receive: Receive, *, announced: int | None, places: asyncio.Semaphore, seconds: float
) -> AsyncIterator[bytes]:
    """The whole body; a large one keeps its place until the block is left.

    Raises `BodyTooLarge` as soon as it is known, `BodyTooSlow` or `NoPlace` after `seconds`, and `Disconnected`.
    """
    if announced is not None and announced > MAX_BODY_BYTES:
        raise BodyTooLarge
    async with AsyncExitStack() as held:
        reading = _Reading(receive, announced or 0, places, held)
        try:
            async with asyncio.timeout(seconds):
                body = await reading.whole()
        except TimeoutError:
            raise (NoPlace if reading.waits else BodyTooSlow) from None
        yield body


@dataclass(slots=True)
class _Reading:
    receive: Receive
    announced: int
    places: asyncio.Semaphore
    held: AsyncExitStack
    waits: bool = False

    async def whole(self) -> bytes:
        body, more, has_place = bytearray(), True, False
        while more:
            if not has_place and max(len(body), self.announced) > SMALL:
                self.waits = True
                await self.held.enter_async_context(self.places)
                self.waits, has_place = False, True
            message = await self.receive()
            if message["type"] != "http.request":
                raise Disconnected
            body += message.get("body", b"")
            if len(body) > MAX_BODY_BYTES:
                raise BodyTooLarge
            more = message.get("more_body", False)
        return bytes(body)


async def discard(receive: Receive, *, most: int, seconds: float) -> None:
    """Take what still comes and keep none of it, so that the client reads the answer before the connection closes."""
    taken = 0
    try:
        async with asyncio.timeout(seconds):
            while taken <= most:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                taken += len(message.get("body", b""))
    except TimeoutError:
        return
