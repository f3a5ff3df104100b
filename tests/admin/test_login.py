"""Login: throttled, clear when throttle or sessions are away; it writes a session and a time and no more."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.db import connections
from django.test import Client
from django.utils import timezone

from config.password_hasher import KeptPassword
from tests.admin.conftest import NAME, PASSWORD
from tests.admin.crawl import watching


def log_in(client: Client, password: str = PASSWORD, name: str = NAME) -> Any:
    return client.post("/admin/login/", {"username": name, "password": password})


def test_a_login_writes_a_session_and_the_time_of_the_login_and_nothing_else(
    client: Client, make_operator: Callable[..., None]
) -> None:
    make_operator()
    before = timezone.now()
    with watching() as ran:
        assert log_in(client).status_code == 302
    written = {one.sql.split('"')[1] for one in ran if one.sql.startswith(("INSERT", "UPDATE", "DELETE"))}
    assert written == {"django_session", "auth_user"}
    assert {one.alias for one in ran} == {"default.session"}
    last = User.objects.using("default.read").get(username=NAME).last_login
    assert last is not None
    assert last >= before


def test_a_grown_work_factor_does_not_make_a_login_write_the_password(
    client: Client, make_operator: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_operator()
    stored = User.objects.using("default.read").get(username=NAME).password
    monkeypatch.setattr(KeptPassword, "iterations", 2000)
    assert log_in(client).status_code == 302
    assert User.objects.using("default.read").get(username=NAME).password == stored
    make_operator()
    assert User.objects.using("default.read").get(username=NAME).password.split("$")[1] == "2000"


def test_logout_ends_the_session_in_the_database(looker: Client) -> None:
    assert Session.objects.using("default.read").count() == 1
    answer = looker.post("/admin/logout/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/login/")
    assert Session.objects.using("default.read").count() == 0
    assert looker.get("/admin/").status_code == 302


def test_a_wrong_password_says_so_and_the_sixth_try_is_locked_out_even_with_the_right_one(
    client: Client, make_operator: Callable[..., None]
) -> None:
    make_operator()
    for _ in range(4):
        answer = log_in(client, "a wrong passphrase 7")
        assert answer.status_code == 200
        assert b"Please enter the correct username and password" in answer.content
    answer = log_in(client, "a wrong passphrase 7")
    assert answer.status_code == 429
    answer = log_in(client)
    assert answer.status_code == 429
    assert b"Too many failed logins" in answer.content
    assert b"Try again 15 min after" in answer.content
    assert log_in(Client(REMOTE_ADDR="192.0.2.7")).status_code == 302, "another address is not locked out"


def test_a_success_forgets_earlier_failures(client: Client, make_operator: Callable[..., None]) -> None:
    make_operator()
    for _ in range(3):
        for _ in range(4):
            log_in(client, "a wrong passphrase 7")
        assert log_in(client).status_code == 302
        client.logout()


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_while_the_throttle_store_is_away_nobody_gets_in_and_the_page_says_why(
    client: Client, make_operator: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_operator()
    monkeypatch.setattr(caches["default"], "_servers", [f"redis://127.0.0.1:{closed_port()}/0"])
    monkeypatch.delitem(caches["default"].__dict__, "_cache", raising=False)
    for password in (PASSWORD, "a wrong passphrase 7"):
        answer = log_in(client, password)
        assert answer.status_code == 503
        assert b"counts failed logins cannot be reached" in answer.content
        assert client.get("/admin/").status_code == 302
    assert client.get("/admin/login/").status_code == 200


@pytest.mark.parametrize("path", ["/admin/", "/admin/core/", "/admin/core/deliveries/", "/admin/login/"])
def test_while_the_session_database_is_away_every_page_is_a_clear_503(
    looker: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections["default.session"].close()
    monkeypatch.setitem(connections["default.session"].settings_dict, "PORT", closed_port())
    answer = looker.get(path)
    assert answer.status_code == 503
    assert b"cannot be reached" in answer.content


def test_a_stolen_session_of_a_disabled_operator_opens_nothing(looker: Client) -> None:
    User.objects.using("default").filter(username=NAME).update(is_active=False)
    assert looker.get("/admin/").status_code == 302
    assert looker.get("/admin/core/events/").status_code == 302
