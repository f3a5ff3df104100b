"""A web server of its own on the test databases, and a provider with a connector of a tenant that has a plan."""

import io
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections

from tests.commercial.make import subscribe
from tests.connectors.provider import Provider, Web
from tests.crash.processes import Crew
from tests.ground.waiting import until
from tests.otlp.server import free_port

PLAN: dict[str, Any] = {"tool": "connector", "dimension": "financial.ingest", "period": "year"}
"""A year, so that no test stands on both sides of a period's end but once a year."""
WORKERS = 3
MakeProvider = Callable[..., Provider]


@pytest.fixture(scope="session")
def web_process(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Web]:
    """One web server for all tests of this room: while a killed process is started again, the others answer."""
    steps, port = tmp_path_factory.mktemp("steps"), free_port()
    with django_db_blocker.unblock():
        connections.close_all()
    crew = Crew()
    # granian gives up when a process dies twice within seconds, which is what tests of kills do.
    command = (
        *("-m", "gunicorn", "--worker-class", "uvicorn_worker.UvicornWorker", "--workers", str(WORKERS)),
        *("--bind", f"127.0.0.1:{port}", "--graceful-timeout", "2", "tests.connectors.web:application"),
    )
    try:
        parent = crew.start(command, WEB_STEPS=str(steps), CONNECTOR_MAX_BODY_BYTES="65536")
        web = Web(port, parent, steps)
        until(lambda: web.is_live() or parent.poll() is not None, patience=120)
        assert parent.poll() is None, parent.said()
        yield web
    finally:
        for process in crew._all:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):  # killed itself, it would leave its workers behind
                process.wait(timeout=60)
        crew.end()


@pytest.fixture
def web(web_process: Web, database: None) -> Web:
    """The shared server, with empty databases."""
    until(web_process.is_live)
    return web_process


@pytest.fixture
def make_provider(web: Web) -> MakeProvider:
    """A connector of a new tenant whose plan allows `limit` events; without a plan if it is None."""

    def make(*, limit: int | None = 10, basis: str = "events", name: str = "bank") -> Provider:
        tenant = "org:none" if limit is None else subscribe(limit=limit, basis=basis, **PLAN).tenant_id
        said = connectors("create", name, "--tenant", f"organization:{tenant}", "--provider", "bank_one")
        return Provider(web, said_connector(said), (said_secret(said),))

    return make


@pytest.fixture
def provider(make_provider: MakeProvider) -> Provider:
    """A connector of a tenant with ten events."""
    return make_provider()


def connectors(*arguments: str) -> str:
    """Run `manage.py connectors`; what it wrote."""
    written = io.StringIO()
    call_command("connectors", *arguments, stdout=written)
    return written.getvalue()


def said_connector(text: str) -> str:
    """The connector's id in what the command wrote."""
    return str(re.findall(r"connector ([0-9a-f-]{36}) created", text)[0])


def said_secret(text: str) -> str:
    """The secret in what the command wrote."""
    (secret,) = re.findall(r"whsec_\S+", text)
    return str(secret)


def said_secret_id(text: str) -> str:
    """The secret's id in what the command wrote."""
    return str(re.findall(r"secret\s+([0-9a-f-]{36}) is current", text)[0])
