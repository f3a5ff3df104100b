"""A web server of its own on the test databases and a tree of its own, and people with plans."""

import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from django.db import connections

from attachments.claims.models import MembershipRole
from attachments.files import place
from tests.claims.person import Person
from tests.commercial.make import subscribe
from tests.crash.processes import Crew, Process
from tests.ground.waiting import until
from tests.otlp.server import free_port

PLAN: dict[str, Any] = {"tool": "storage", "dimension": "attachment.upload", "basis": "bytes", "period": "year"}
"""A year, so that no test stands on both sides of a period's end but once a year."""
LARGEST_BYTES = 4 * 2**20
MakePerson = Callable[..., Person]


@dataclass(slots=True)
class Web:
    """The server: its address, its process, where it pauses or dies, and the tree that it stores in."""

    base: str
    start: Callable[[], Process]
    process: Process
    steps: Path
    root: Path

    def revive(self) -> None:
        """Wait until it answers, and start it again if it was killed: it ends with its one worker."""
        if self.process.poll() is None:
            until(lambda: self.is_live() or self.process.poll() is not None)
        if self.process.poll() is not None:
            self.process = self.start()
            until(lambda: self.is_live() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.said()

    def address(self) -> tuple[str, int]:
        """For a socket."""
        host, _, port = self.base.removeprefix("http://").partition(":")
        return host, int(port)

    def is_live(self) -> bool:
        """Whether it answers."""
        try:
            return requests.get(f"{self.base}/health/live", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def at(self, step: str, verb: str) -> None:
        """`pause` or `kill` the next one that reaches the step."""
        for name in ("reached", "go"):
            (self.steps / name).unlink(missing_ok=True)
        (self.steps / "new").write_text(step)
        (self.steps / "new").rename(self.steps / verb)

    def await_step(self) -> None:
        """Wait until it pauses there."""
        until((self.steps / "reached").exists)

    def go_on(self) -> None:
        """Let what pauses continue."""
        (self.steps / "go").touch()

    def files(self) -> dict[str, bytes]:
        """Every file of the tree but for what is being received, by its path, hidden ones too."""
        found = (path for path in self.root.rglob("*") if path.is_file() and ".incoming" not in path.parts)
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}

    def incoming(self) -> list[Path]:
        """What is received and not placed."""
        folder = self.root / ".incoming"
        return list(folder.iterdir()) if folder.exists() else []


@pytest.fixture(scope="session")
def web_process(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Web]:
    """One web server for all tests of this room."""
    steps, root, port = tmp_path_factory.mktemp("steps"), tmp_path_factory.mktemp("tree"), free_port()
    with django_db_blocker.unblock():
        connections.close_all()
    crew = Crew()
    command = (
        *("-m", "granian", "--interface", "asginl", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--workers-kill-timeout", "2", "tests.connectors.web:application"),
    )

    def start() -> Process:
        return crew.start(
            command,
            WEB_STEPS=str(steps),
            ATTACHMENTS_ROOT=str(root),
            ATTACHMENTS_INCOMING=str(root / ".incoming"),
            ATTACHMENTS_LARGEST_BYTES=str(LARGEST_BYTES),
            API_BODY_TIMEOUT="3",
        )

    try:
        web = Web(f"http://127.0.0.1:{port}", start, start(), steps, root)
        until(lambda: web.is_live() or web.process.poll() is not None, patience=120)
        web.revive()
        yield web
        # Killed itself, the parent would leave its worker behind.
        web.process.send_signal(signal.SIGTERM)
        web.process.wait(timeout=60)
    finally:
        crew.end()


@pytest.fixture
def web(web_process: Web, database: None, settings: Any) -> Iterator[Web]:
    """The shared server with empty databases and an empty tree, which this process uses as well."""
    web_process.revive()
    settings.ATTACHMENTS_ROOT, settings.ATTACHMENTS_INCOMING = web_process.root, web_process.root / ".incoming"
    place._tried.cache_clear()
    yield web_process
    for path in web_process.root.iterdir():
        if path.name != ".incoming":
            shutil.rmtree(path)
    place._tried.cache_clear()


@pytest.fixture
def make_person(web: Web) -> MakePerson:
    """A person of a new tenant whose plan allows `limit` bytes; without a plan if it is None."""

    def make(
        *, limit: int | None = 10_000, tenant: str | None = None, name: str = "alice", reviewer: bool = False
    ) -> Person:
        if tenant is None:
            tenant = f"organization:{subscribe(limit=limit, **PLAN).tenant_id}" if limit else "organization:no-plan"
        role = MembershipRole.REVIEWER if reviewer else MembershipRole.MEMBER
        return Person(base=web.base, tenant=tenant, name=name, role=role)

    return make


@pytest.fixture
def alice(make_person: MakePerson) -> Person:
    """A member of a tenant with ten thousand bytes."""
    return make_person()
