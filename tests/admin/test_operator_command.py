"""`manage.py operator`: a login that can look and nothing else, made again without harm."""

import io
import sys
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from config.readonly_admin import SECTIONS
from tests.admin.conftest import NAME, PASSWORD


def test_it_makes_a_staff_login_with_every_view_permission_and_no_other(make_operator: Callable[..., None]) -> None:
    make_operator()
    make_operator()
    user = User.objects.using("default").get(username=NAME)
    assert (user.is_staff, user.is_active, user.is_superuser) == (True, True, False)
    permissions = user.get_all_permissions()
    models = {model._meta for section in SECTIONS.values() for model in section._registry}
    assert permissions == {f"{model.app_label}.view_{model.model_name}" for model in models}


def test_it_takes_rights_away_that_an_operator_should_not_have(make_operator: Callable[..., None]) -> None:
    make_operator()
    user = User.objects.using("default").get(username=NAME)
    user.is_superuser = True
    user.save(using="default")
    make_operator(password="another passphrase 8")
    user.refresh_from_db(using="default")
    assert not user.is_superuser
    assert user.check_password("another passphrase 8")


@pytest.mark.parametrize(
    "name, password, message",
    [
        ("no spaces", PASSWORD, "is no login name"),
        ("", PASSWORD, "is no login name"),
        (NAME, "short", "at least 12 characters"),
        (NAME, "passwordpassword", ""),
        (NAME, "", "no terminal"),
    ],
)
def test_bad_input_is_refused_with_advice_and_makes_no_login(
    database: None, monkeypatch: pytest.MonkeyPatch, name: str, password: str, message: str
) -> None:
    monkeypatch.setenv("OPERATOR_PASSWORD", password)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    if message:
        with pytest.raises(CommandError, match=message):
            call_command("operator", name, verbosity=0)
        assert not User.objects.using("default").exists()


def test_the_password_comes_through_a_pipe(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
    call_command("operator", NAME, password_stdin=True, verbosity=0)
    assert User.objects.using("default").get(username=NAME).check_password(PASSWORD)


def test_without_a_database_it_says_what_to_do(run_django: Callable[..., CompletedProcess[str]]) -> None:
    environment: dict[str, Any] = {
        "OPERATOR_PASSWORD": PASSWORD,
        "DATABASE_URL_CORE_OWNER": "postgres://a:b@127.0.0.1:1/c",
    }
    done = run_django("operator", NAME, env=environment)
    assert done.returncode == 1
    assert "migrate_owners" in done.stderr
    assert "Traceback" not in done.stderr
