"""A receiver of its own for tests over HTTP, and a clean start for tests without it."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from metering.clusters.audit import Actor
from metering.clusters.clusters import create_cluster
from metering.clusters.models import Cluster, Mode
from metering.clusters.rotate import rotate
from metering.clusters.secret_store import FileStore
from tests.crash.processes import Crew
from tests.otlp.server import Server, start
from tests.otlp.storing import forget_days

ACTOR = Actor(name="alice", through="command")
MakeToken = Callable[..., str]


@pytest.fixture
def telemetry(database: None) -> Iterator[None]:
    """The real databases, and a process that knows nothing of them yet."""
    forget_days()
    yield
    forget_days()


@pytest.fixture(scope="session")
def server_process(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Server]:
    """One receiver for many tests: two processes, short patience, JSON accepted, an archive."""
    place = tmp_path_factory.mktemp("receiver")
    metrics = place / "metrics"
    metrics.mkdir()
    with django_db_blocker.unblock():
        connections.close_all()
    crew = Crew()
    try:
        yield start(
            crew,
            OTLP_PROCESSES="2",
            OTLP_JSON="1",
            OTLP_BODY_TIMEOUT="5",
            OTLP_HEADER_TIMEOUT="3",
            OTLP_ARCHIVE_DIR=str(place / "archive"),
            PROMETHEUS_MULTIPROC_DIR=str(metrics),
        )
    finally:
        crew.end()


@pytest.fixture
def make_token(telemetry: None, tmp_path: Path, settings: Any) -> MakeToken:
    """A token of a cluster that is made with it: its mode, sink and rate."""
    settings.OTLP_SECRET_DIR = tmp_path / "secrets"

    def make(cluster: int = 7, *, mode: Mode = Mode.GATEWAY, **own: Any) -> str:
        if not Cluster.objects.filter(cluster_id=cluster).exists():
            create_cluster(cluster_id=cluster, name=f"cluster {cluster} {uuid.uuid4()}", mode=mode, actor=ACTOR)
        if own:
            Cluster.objects.filter(cluster_id=cluster).update(**own)
        return str(rotate(cluster_id=cluster, actor=ACTOR, store=FileStore(), mode=mode).plaintext.text)

    return make


@pytest.fixture
def server(server_process: Server, make_token: MakeToken) -> Server:
    """The shared receiver, with a gateway token of cluster 7."""
    server_process.token = make_token()
    return server_process


@pytest.fixture
def crew() -> Iterator[Crew]:
    """Processes that end with the test."""
    made = Crew()
    yield made
    made.end()
