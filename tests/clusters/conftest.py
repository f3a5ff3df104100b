"""Clusters, tokens and a secret store as the commands and the API make them."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.cache import cache
from django.core.management import call_command
from django.db import connections
from django.test import Client

from config.password_hasher import KeptPassword
from metering.clusters.audit import Actor
from metering.clusters.authenticate import Authenticated, AuthenticationFailed, authenticate
from metering.clusters.clusters import create_cluster
from metering.clusters.models import AdminAuditEntry, Mode, OtlpToken, TokenState
from metering.clusters.rotate import Rotated, rotate
from metering.clusters.secret_store import FileStore

PASSWORD = "a long passphrase 7"
ACTOR = Actor(name="alice", through="session")


@pytest.fixture
def store(settings: Any, tmp_path: Path) -> FileStore:
    """The file store in a directory of its own."""
    settings.OTLP_SECRET_DIR = tmp_path / "secrets"
    return FileStore()


@pytest.fixture
def cluster(database: None) -> int:
    """Cluster 7, whose tokens are gateway tokens."""
    create_cluster(cluster_id=7, name="seven", mode=Mode.GATEWAY, actor=ACTOR)
    return 7


@pytest.fixture
def rotated(cluster: int, store: FileStore) -> Callable[[], Rotated]:
    """Rotate cluster 7."""
    return lambda: rotate(cluster_id=cluster, actor=ACTOR, store=store)


@pytest.fixture
def login(database: None, store: FileStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Client]]:
    """Log an operator in, in a browser that takes CSRF seriously."""
    monkeypatch.setattr(KeptPassword, "iterations", 1000)
    monkeypatch.setenv("OPERATOR_PASSWORD", PASSWORD)
    if not (Path(django_settings.STATIC_ROOT) / "staticfiles.json").exists():
        call_command("collectstatic", interactive=False, verbosity=0)
    cache.clear()

    def run(name: str) -> Client:
        call_command("operator", name, verbosity=0)
        client = Client(enforce_csrf_checks=True)
        client.get("/admin/login/")
        answer = client.post(
            "/admin/login/",
            {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": client.cookies["csrftoken"].value},
        )
        assert answer.status_code == 302
        return client

    yield run
    connections.close_all()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    connections["metering.read"].close()


def database_time() -> datetime:
    """The clock by which deadlines are set."""
    with connections["metering.read"].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def header_of(done: Rotated) -> bytes:
    """What a collector with this token sends."""
    return b"Bearer " + done.plaintext.text.encode()


def outcome(header: bytes | None, now: datetime) -> str:
    """`accepted`, or the reason of the refusal."""
    try:
        authenticate(header, now)
    except AuthenticationFailed as failed:
        return failed.reason.value
    return "accepted"


def let_in(done: Rotated, now: datetime | None = None) -> Authenticated:
    """The token is accepted at this moment. Raises `AuthenticationFailed`."""
    return authenticate(header_of(done), now or database_time())


def states(cluster_id: int) -> list[TokenState]:
    """The states of the cluster's tokens, oldest first."""
    found = OtlpToken.objects.using("metering.read").filter(cluster_id=cluster_id).order_by("token_id")
    return [TokenState(state) for state in found.values_list("state", flat=True)]


def audited(**where: Any) -> list[str]:
    """The actions in the audit, oldest first."""
    found = AdminAuditEntry.objects.using("metering.read").filter(**where).order_by("entry_id")
    return list(found.values_list("action", flat=True))
