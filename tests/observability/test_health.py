"""The three health pages."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client

from config import health
from config.embedded import running_services, state_dir
from config.health import look_around
from config.owners import OWNERS, owner_named


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Each test looks at the databases itself."""
    health._last.at = float("-inf")
    yield
    health._last.at = float("-inf")


def test_live_and_version_answer_without_any_database(client: Client) -> None:
    assert client.get("/health/live").json() == {"live": True}
    assert client.get("/health/version").json() == {"version": settings.RELEASE, "region": settings.REGION}
    assert client.post("/health/live").status_code == 405


def test_ready_names_every_part(database: None, client: Client) -> None:
    response = client.get("/health/ready")
    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "parts": {**{f"database {owner.name}": "ready" for owner in OWNERS}, "broker": "ready"},
    }
    assert "no-store" in response.headers["Cache-Control"]


def test_ready_says_which_database_is_unreachable_and_nothing_of_where_it_is(
    database: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias = owner_named("billing").read_alias
    monkeypatch.setitem(connections[alias].settings_dict, "PORT", 1)
    connections[alias].close()
    response = client.get("/health/ready")
    assert response.status_code == 503
    body = response.json()
    assert body["ready"] is False
    assert [name for name, state in body["parts"].items() if state != "ready"] == ["database billing"]
    assert body["parts"]["database billing"] == "unreachable"
    assert_no_secret(response.content.decode())


def test_ready_says_that_the_broker_is_unreachable(
    database: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://:hunter2@127.0.0.1:1/0")
    response = client.get("/health/ready")
    assert response.status_code == 503
    assert response.json()["parts"]["broker"] == "unreachable"
    assert "hunter2" not in response.content.decode()


def test_ready_counts_missing_migrations(database: None) -> None:
    with connections["execution.schema"].cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'outbox' RETURNING app, name, applied")
        rows = cursor.fetchall()
        try:
            parts = look_around()
        finally:
            cursor.executemany("INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)", rows)
    assert parts["database execution"] == f"lacks {len(rows)} migrations"
    assert parts["database core"] == "ready"


def test_a_crowd_of_probes_shares_one_look(database: None, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([{"database core": "ready"}])
    monkeypatch.setattr(health, "look_around", lambda: next(looks))
    for _ in range(5):
        assert client.get("/health/ready").status_code == 200
    assert not list(looks)


def assert_no_secret(text: str) -> None:
    """No password, host, port, user or database name of the installation."""
    services = running_services(state_dir())
    for database in settings.DATABASES.values():
        for name in ("PASSWORD", "USER", "HOST"):
            assert not database[name] or database[name] not in text
        assert database["NAME"] not in text
    if services is not None:
        assert services.postgres_password not in text
        assert str(services.postgres_port) not in text
