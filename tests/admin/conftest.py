"""A logged-in operator, and static files as a deployment collects them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from config.password_hasher import KeptPassword
from tests.admin.world import AT_ONCE, World, make_world

NAME = "looker"
PASSWORD = "a long passphrase 7"


@pytest.fixture(scope="session")
def static_files() -> None:
    """Collected once, and again when one of our own changed."""
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    ours = [path.stat().st_mtime for path in (settings.BASE_DIR / "config" / "static").glob("**/*")]
    if not manifest.exists() or manifest.stat().st_mtime < max(ours):
        call_command("collectstatic", interactive=False, verbosity=0)


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A work factor that costs a test nothing."""
    monkeypatch.setattr(KeptPassword, "iterations", 1000)


@pytest.fixture
def make_operator(database: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Create an operator login through the command."""

    def make(name: str = NAME, password: str = PASSWORD) -> None:
        monkeypatch.setenv("OPERATOR_PASSWORD", password)
        call_command("operator", name, verbosity=0)

    return make


@pytest.fixture
def client(database: None, static_files: None) -> Client:
    """A browser that nobody logged in with, and a throttle that has forgotten everything."""
    cache.clear()
    return Client()


@pytest.fixture
def looker(client: Client, make_operator: Callable[..., None]) -> Client:
    """A browser in which an operator has logged in."""
    make_operator()
    answer = client.post("/admin/login/", {"username": NAME, "password": PASSWORD})
    assert answer.status_code == 302, answer.content
    return client


@pytest.fixture
def world(database: None, settings: Any) -> World:
    """Something to look at."""
    settings.OUTBOX_RETRY = AT_ONCE
    return make_world()
