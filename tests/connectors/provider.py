"""A provider: signs events as the Standard Webhooks library does, or by hand, and sends them over real HTTP."""

import base64
import hashlib
import hmac
import http.client
import json
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from standardwebhooks.webhooks import Webhook

from tests.crash.processes import Process
from tests.ground.waiting import until

BODY = b'{"type":"payment.settled","data":{"amount":"118.00","note":"Hotel Baur au Lac"}}'


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """What it says."""
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The last part of a problem's type."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return str(self.json["type"]).rpartition(":")[2]

    @property
    def told(self) -> tuple[int, bytes, dict[str, str]]:
        """All of it but when it was sent and under which number it was logged."""
        passing = {"date", "x-request-id", "x-correlation-id"}
        return self.status, self.body, {name: value for name, value in self.headers.items() if name not in passing}


@dataclass(frozen=True, slots=True)
class Web:
    """A web server whose processes are started again when they were killed."""

    port: int
    parent: Process
    steps: Path

    def request(
        self, method: str, path: str, body: bytes | Iterable[bytes] = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own. Raises `OSError` or `HTTPException` if there is no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                chunked = not isinstance(body, bytes)
                connection.request(method, path, body, dict(headers or {}), encode_chunked=chunked)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def kill_at(self, step: str) -> None:
        """The next process that reaches the step kills itself."""
        (self.steps / "kill").write_text(step)

    def fail_at(self, step: str) -> None:
        """The next thread that reaches the step meets a database error."""
        (self.steps / "fail").write_text(step)

    def pause_at(self, step: str) -> None:
        """The next thread that reaches the step waits for `go_on`."""
        for name in ("reached", "go"):
            (self.steps / name).unlink(missing_ok=True)
        (self.steps / "pause").write_text(step)

    def await_pause(self) -> None:
        """Wait until a thread stands at its step."""
        until((self.steps / "reached").exists)

    def go_on(self) -> None:
        """Let it continue."""
        (self.steps / "go").touch()

    def is_live(self) -> bool:
        """Whether it answers."""
        try:
            return self.request("GET", "/health/live").status == 200
        except (OSError, http.client.HTTPException):
            return False


@dataclass(frozen=True, slots=True)
class Event:
    """What the provider knows of an event; every attempt to send it is signed anew."""

    webhook_id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex}")
    body: bytes = BODY


@dataclass(frozen=True, slots=True)
class Provider:
    """One connector as its provider sees it."""

    web: Web
    connector_id: str
    secrets: tuple[str, ...]

    @property
    def path(self) -> str:
        """Where its events go."""
        return f"/api/v1/connectors/{self.connector_id}/events"

    def with_secrets(self, *secrets: str) -> "Provider":
        """The same, signing with these."""
        return Provider(self.web, self.connector_id, secrets)

    def headers(self, event: Event, *, seconds: int | None = None) -> dict[str, str]:
        """The three headers of one attempt, signed with every secret."""
        at = int(time.time()) if seconds is None else seconds
        signatures = " ".join(sign(secret, event.webhook_id, at, event.body) for secret in self.secrets)
        return {"webhook-id": event.webhook_id, "webhook-timestamp": str(at), "webhook-signature": signatures}

    def send(self, event: Event | None = None, *, seconds: int | None = None, **changed: str | None) -> Answer:
        """One attempt; `changed` replaces headers or, with None, leaves them out (underscores are dashes)."""
        event = event or Event()
        headers = self.headers(event, seconds=seconds) | {"content-type": "application/json"}
        for name, value in changed.items():
            headers.pop(name.replace("_", "-"), None)
            if value is not None:
                headers[name.replace("_", "-")] = value
        return self.web.request("POST", self.path, event.body, headers)


def sign(secret: str, webhook_id: str, seconds: int, body: bytes) -> str:
    """By the library where it can (it takes text only), else by hand; where both can they agree."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{webhook_id}.{seconds}.".encode() + body
    own = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    with suppress(UnicodeDecodeError):
        peer = Webhook(secret).sign(webhook_id, datetime.fromtimestamp(seconds, UTC), body.decode())
        assert peer == own
    return own
