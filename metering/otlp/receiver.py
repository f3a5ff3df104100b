"""The receiver as an ASGI application (T1). It stands beside Django's request handler, not on it.

Django would store a whole body before anyone asked whose it is. Nothing here is answered with a redirect, and nothing
unexpected with 500, at which clients drop their data.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog
from django.conf import settings

from metering.otlp import answers, metrics, pages
from metering.otlp.answers import Answer
from metering.otlp.body import MAX_BODY_BYTES, Disconnected, Receive, discard
from metering.otlp.headers import is_json
from metering.otlp.logs import Logs, unavailable
from metering.otlp.reasons import Unavailable
from metering.otlp.sinks import archive

LOGS = "/v1/logs"
OTHER_SIGNALS = frozenset({"/v1/metrics", "/v1/traces"})
DISCARD_SECONDS = 2.0
"""How long a client that was refused may go on sending before the connection closes."""

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
log = structlog.get_logger("otlp.receiver")


class Receiver:
    """One process's receiver."""

    def __init__(self) -> None:
        self._logs: Logs | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                metrics.begin()
                self._logs = Logs()
                await send({"type": "lifespan.startup.complete"})
            else:
                if self._logs is not None:
                    await self._logs.close()
                archive().close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer, whole = await self._answer(scope, receive)
        except Disconnected:
            return
        except Exception:
            log.exception("otlp_unexpected")
            answer, whole = unavailable(Unavailable.UNEXPECTED, is_json=is_json(scope["headers"])), False
        await _send(answer, whole=whole, receive=receive, send=send)

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[Answer, bool]:
        path, method, json = scope["path"], scope["method"], is_json(scope["headers"])
        if path == LOGS:
            if method != "POST":
                return answers.not_allowed(b"POST", is_json=json), False
            if self._logs is None:
                self._logs = Logs()
            return await self._logs.post(scope["headers"], receive)
        if path in OTHER_SIGNALS:
            return answers.other_signal(), False
        page = pages.PAGES.get(path)
        if page is None or not pages.may_read(scope, page, settings.METRICS_NETWORKS):
            return answers.not_found(is_json=json), False
        if method not in {"GET", "HEAD"}:
            return answers.not_allowed(b"GET, HEAD", is_json=json), False
        return await page.answer(), True


async def _send(answer: Answer, *, whole: bool, receive: Receive, send: Send) -> None:
    """Send the answer. A body that was not taken is discarded for a moment, and its connection closed."""
    headers = answer.headers if whole else [*answer.headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": int(answer.status), "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": not whole})
    if not whole:
        await discard(receive, most=MAX_BODY_BYTES, seconds=DISCARD_SECONDS)
        await send({"type": "http.response.body", "body": b""})
