"""Calls of the scene to the web process: a few requests with small bodies, over one connection each."""

import http.client
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 30


class NoAnswer(RuntimeError):
    """The web process did not answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body, which is a document."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Api:
    """The API at `url`, called with these headers."""

    url: str
    headers: Mapping[str, str]

    def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Raises `NoAnswer`."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, f"/api/v1{path}", body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(f"{method} {self.url}/api/v1{path}: {type(error).__name__}") from error
        finally:
            connection.close()

    def send(self, method: str, path: str, document: Mapping[str, Any]) -> Answer:
        """With a JSON document."""
        return self.call(method, path, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def upload(self, method: str, path: str, *, name: str, content: bytes, request_id: str) -> Answer:
        """With one file, as a form does."""
        boundary = secrets.token_hex(16)
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "X-Request-ID": request_id}
        return self.call(method, path, body, headers)
