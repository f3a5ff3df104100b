"""The part of Infisical's HTTP interface that its SDK uses here: login, folders, secrets; and how it can fail."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

IDENTITY = {"clientId": "an-identity", "clientSecret": "its-secret"}
ACCESS = "an-access-token"
PROJECT, ENVIRONMENT = "a-project", "production"


@dataclass
class Kept:
    """What the server holds, and how it is to fail."""

    url: str = ""
    folders: set[str] = field(default_factory=lambda: {"/"})
    secrets: dict[tuple[str, str], str] = field(default_factory=dict)
    status: int = 0
    """Answer this instead, once logged in."""
    hangs: bool = False
    """Take the request and never answer."""
    seen: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def infisical() -> Iterator[Kept]:
    """A server on a free port of this machine."""
    kept = Kept()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(kept))
    server.daemon_threads = True
    kept.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        kept.released.set()
        server.shutdown()
        server.server_close()


def _handler(kept: Kept) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body: dict[str, Any] = json.loads(self.rfile.read(length) or b"{}")
            kept.seen.append(f"{self.command} {url.path}")
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            if kept.hangs:
                kept.released.wait(60)
                return
            status, content = self._found(url.path, {**query, **body})
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_PATCH(self) -> None:
            self._answer()

        def _found(self, path: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            if path == "/api/v1/auth/universal-auth/login":
                access = {"accessToken": ACCESS, "expiresIn": 60, "accessTokenMaxTTL": 60, "tokenType": "Bearer"}
                return (200, access) if asked == IDENTITY else (401, {"message": "Invalid credentials"})
            if self.headers.get("Authorization") != f"Bearer {ACCESS}":
                return 401, {"message": "Token missing"}
            if kept.status:
                return kept.status, {"message": f"It goes wrong: {asked.get('secretValue')}"}
            project = asked.get("workspaceId") or asked.get("projectId")
            if (project, asked.get("environment")) != (PROJECT, ENVIRONMENT):
                return 403, {"message": "Not your project"}
            if path == "/api/v2/folders":
                return self._folder(asked)
            return self._secret(path.rpartition("/")[2], asked)

        def _folder(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            parent = asked["path"]
            if parent not in kept.folders:
                return 404, {"message": "Folder not found"}
            if self.command == "GET":
                inside = [one for one in kept.folders if one != "/" and (one.rpartition("/")[0] or "/") == parent]
                return 200, {"folders": [_folder_of(one) for one in inside]}
            whole = f"{parent.rstrip('/')}/{asked['name']}"
            kept.folders.add(whole)
            return 200, {"folder": {**_folder_of(whole), "path": whole}}

        def _secret(self, name: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            place = asked["secretPath"], name
            if place[0] not in kept.folders or (self.command != "POST" and place not in kept.secrets):
                return 404, {"message": "Secret not found"}
            if self.command != "GET":
                kept.secrets[place] = asked["secretValue"]
            return 200, {"secret": _secret_of(name, kept.secrets[place])}

        def log_message(self, format: str, *args: Any) -> None:
            """Tests read `seen` instead."""

    return Handler


def _folder_of(path: str) -> dict[str, Any]:
    times = {"createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}
    return {"id": path, "name": path.rpartition("/")[2], "envId": "1", **times}


def _secret_of(name: str, value: str) -> dict[str, Any]:
    return {
        "id": name, "_id": name, "workspace": PROJECT, "environment": ENVIRONMENT, "version": 1, "type": "shared",
        "secretKey": name, "secretValue": value, "secretComment": "", "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-01T00:00:00Z",
    }  # fmt: skip
