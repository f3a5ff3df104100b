"""`POST /v1/logs`: token and rate, then the body under its bounds, then decoding and storing, then the answer.

What is refused before its body was read is answered at once; what the client still sends is taken for a moment and
thrown away, so that it reads the answer instead of a reset connection, and then the connection is closed.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from metering.clusters.authenticate import Authenticated, AuthenticationFailed
from metering.otlp import answers, metrics
from metering.otlp.admit import RateLimited, admit
from metering.otlp.answers import Answer
from metering.otlp.body import MAX_BODY_BYTES, BodyTooLarge, BodyTooSlow, NoPlace, Receive, body_of
from metering.otlp.days import Gone, NotYet
from metering.otlp.headers import Described, RawHeaders, Unsupported, authorization, described, is_json
from metering.otlp.reasons import RefusedBody, Unavailable
from metering.otlp.receive import Request, TurnsOutLarge, receive
from metering.otlp.sinks import ArchiveFailed
from metering.otlp.wire import Malformed, TooLarge

ADMITTING_THREADS = 2
"""They only ask for tokens, so a full store never delays a 401 or a 429."""
QUEUE_SECONDS = 10.0
"""How long a complete body waits for its turn; real clients give up after ten seconds."""

T = TypeVar("T")
log = structlog.get_logger("otlp.logs")


class Logs:
    """The threads of one process and what they share. Made in a running event loop."""

    def __init__(self) -> None:
        self._admitting = ThreadPoolExecutor(ADMITTING_THREADS, "admit")
        self._working = ThreadPoolExecutor(settings.OTLP_THREADS, "receive")
        self._free = asyncio.Semaphore(settings.OTLP_THREADS)
        self._turn = asyncio.Lock()
        self._waiting: defaultdict[int, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(settings.OTLP_THREADS)
        )
        """Per cluster: no more of its requests than there are threads stand in the queue, so others come next."""
        self._places = asyncio.Semaphore(settings.OTLP_LARGE_BODIES)

    async def close(self) -> None:
        """Wait for what is in work."""
        await asyncio.to_thread(self._working.shutdown)
        await asyncio.to_thread(self._admitting.shutdown)

    async def post(self, headers: RawHeaders, get: Receive) -> tuple[Answer, bool]:
        """The answer to a request, and whether its whole body was taken. Raises `Disconnected`."""
        json = is_json(headers)
        try:
            who = await self._in(self._admitting, lambda: admit(authorization(headers), now=datetime.now(UTC)))
            form = described(headers, accepts_json=settings.OTLP_JSON)
            async with body_of(
                get, announced=form.announced, places=self._places, seconds=settings.OTLP_BODY_TIMEOUT
            ) as body:
                return await self._take(body, form, who), True
        except tuple(EARLY) as error:
            return next(answer for kind, answer in EARLY.items() if isinstance(error, kind))(error, json), False

    async def _take(self, body: bytes, form: Described, who: Authenticated) -> Answer:
        if not body and form.announced != 0:
            metrics.refused_body(RefusedBody.EMPTY)
            return answers.malformed("The body is empty.", is_json=form.is_json)
        request = Request(body=body, is_gzip=form.is_gzip, is_json=form.is_json, who=who, received_at=datetime.now(UTC))
        began = time.perf_counter()
        try:
            answer = await self._work(request, has_turn=request.looks_large)
        except TurnsOutLarge:
            answer = await self._work(request, has_turn=True)
        metrics.request_seconds(time.perf_counter() - began)
        return answer

    async def _work(self, request: Request, *, has_turn: bool) -> Answer:
        """The answer of a thread. Raises `TurnsOutLarge` if the request needs the turn for large ones."""
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(QUEUE_SECONDS):
                    if has_turn:
                        await held.enter_async_context(self._turn)
                    await held.enter_async_context(self._waiting[request.who.cluster_id])
                    await held.enter_async_context(self._free)
            except TimeoutError:
                return unavailable(Unavailable.BUSY, is_json=request.is_json)
            return await self._in(self._working, lambda: answer_to(replace(request, has_turn=has_turn)))

    async def _in(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads, work)


def answer_to(request: Request) -> Answer:
    """The answer to a complete body. It is 200 only when the sink has the events. Raises `TurnsOutLarge`."""
    json = request.is_json
    try:
        return answers.accepted(receive(request), is_json=json)
    except Malformed as error:
        metrics.refused_body(RefusedBody.MALFORMED)
        log.warning("otlp_body_refused", reason=RefusedBody.MALFORMED, cluster_id=str(request.who.cluster_id))
        return answers.malformed(str(error), is_json=json)
    except TooLarge as error:
        metrics.refused_body(RefusedBody.TOO_LARGE)
        log.warning("otlp_body_refused", reason=RefusedBody.TOO_LARGE, cluster_id=str(request.who.cluster_id))
        return answers.too_large(str(error), is_json=json)
    except TurnsOutLarge:
        raise
    except ArchiveFailed as error:
        log.error("otlp_archive_failed", error=str(error))
        return unavailable(Unavailable.ARCHIVE, is_json=json)
    except (DatabaseError, InterfaceError, Gone, NotYet) as error:
        log.error("otlp_store_failed", error_class=type(error).__name__, sqlstate=_sqlstate(error))
        return unavailable(Unavailable.STORE, is_json=json)
    except Exception:
        log.exception("otlp_unexpected")
        return unavailable(Unavailable.UNEXPECTED, is_json=json)


def unavailable(reason: Unavailable, *, is_json: bool) -> Answer:
    """503, counted under its reason."""
    metrics.unavailable(reason)
    return answers.unavailable(is_json=is_json)


def _unsupported(error: Exception, json: bool) -> Answer:
    metrics.refused_body(RefusedBody.UNSUPPORTED)
    return answers.unsupported(str(error), is_json=json)


def _too_large(_error: Exception, json: bool) -> Answer:
    metrics.refused_body(RefusedBody.TOO_LARGE)
    return answers.too_large(f"A body has at most {MAX_BODY_BYTES} bytes.", is_json=json)


def _tokens_unreachable(error: Exception, json: bool) -> Answer:
    log.error("otlp_tokens_unreachable", error_class=type(error).__name__)
    return unavailable(Unavailable.TOKEN_STORE, is_json=json)


EARLY: dict[type[Exception], Callable[[Exception, bool], Answer]] = {
    AuthenticationFailed: lambda _, json: answers.unauthenticated(is_json=json),
    RateLimited: lambda _, _json: answers.too_many_requests(),
    Unsupported: _unsupported,
    BodyTooLarge: _too_large,
    BodyTooSlow: lambda _, json: unavailable(Unavailable.SLOW, is_json=json),
    NoPlace: lambda _, json: unavailable(Unavailable.BUSY, is_json=json),
    DatabaseError: _tokens_unreachable,
    InterfaceError: _tokens_unreachable,
}
"""Answers given before the whole body was taken."""


def _sqlstate(error: Exception) -> Any:
    return getattr(error.__cause__, "sqlstate", None)
