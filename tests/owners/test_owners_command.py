"""`manage.py owners`: what it says, also when something is wrong."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connections, transaction

from config import checks
from config.connections import Processes, most, most_per_server
from config.owners import OWNERS, Role, owner_named
from outbox.append import append_many
from tests.outbox.make import admission
from tests.owners.places import elsewhere

RunDjango = Callable[..., subprocess.CompletedProcess[str]]


def inventory(run_django: RunDjango, **env: str) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    """Exit code, the owners by name, and the whole answer."""
    done = run_django("owners", "--json", env=env)
    whole = json.loads(done.stdout)
    return done.returncode, {owner["owner"]: owner for owner in whole["owners"]}, whole


def test_everything_is_in_order_after_migrate_owners(database: None, run_django: RunDjango) -> None:
    with transaction.atomic(using="default"):
        append_many([*admission(), *admission()], using="default")
    code, owners, whole = inventory(run_django)
    assert (code, whole["ok"]) == (0, True)
    assert list(owners) == [owner.name for owner in OWNERS]
    for owner in OWNERS:
        shown = owners[owner.name]
        assert (shown["problem"], shown["unapplied"]) == (None, {})
        assert [login["role"] for login in shown["logins"]] == [str(role) for role in owner.roles]
        assert not any(login["problem"] for login in shown["logins"])
    (waiting,) = owners["core"]["backlog"]
    assert (waiting["destination"], waiting["state"], waiting["due"]) == ("core_operations", "in_delivery", 4)
    assert waiting["oldest_seconds"] >= 0
    assert {(entry["destination"], entry["state"]) for entry in owners["execution"]["backlog"]} == {
        ("metering_input_processor", "awaiting_consumer"),
        ("billing_finalization_coordinator", "awaiting_consumer"),
    }
    (server,) = whole["servers"]
    assert server["configured"] <= server["max_connections"]


def test_the_text_form_names_owners_roles_migrations_and_server(database: None, run_django: RunDjango) -> None:
    done = run_django("owners")
    assert done.returncode == 0, done.stdout + done.stderr
    for owner in OWNERS:
        for role in owner.roles:
            assert owner.role_name(role) in done.stdout
    assert done.stdout.count("up to date") == len(OWNERS)
    assert "core_operations: nothing waits" in done.stdout
    assert "sessions in use; the configured processes can open" in done.stdout


def test_a_server_that_is_down_is_named_and_the_others_are_still_shown(database: None, run_django: RunDjango) -> None:
    code, owners, whole = inventory(run_django, **elsewhere("metering"))
    assert (code, whole["ok"]) == (1, False)
    assert owners["metering"]["problem"].startswith("OperationalError: ")
    assert all(login["problem"] for login in owners["metering"]["logins"])
    assert owners["metering"]["server"] == "127.0.0.1:1"
    assert owners["execution"]["problem"] is None
    assert {server["server"]: server["max_connections"] is None for server in whole["servers"]}["127.0.0.1:1"]


def test_a_role_that_cannot_log_in_is_named_without_its_password(database: None, run_django: RunDjango) -> None:
    settings = connections["gateway"].settings_dict
    wrong = f"postgresql://{settings['USER']}:hunter2@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
    code, owners, whole = inventory(run_django, DATABASE_URL_GATEWAY_OWNER=wrong)
    problems = {login["role"]: login["problem"] for login in owners["gateway"]["logins"]}
    assert code == 1
    assert problems.pop("owner") is not None
    assert set(problems.values()) == {None}
    assert "hunter2" not in json.dumps(whole)


def test_missing_migrations_are_listed_by_app(database: None, run_django: RunDjango) -> None:
    with connections["gateway.schema"].cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'outbox' RETURNING app, name, applied")
        rows = cursor.fetchall()
        try:
            code, owners, _ = inventory(run_django)
            text = run_django("owners").stdout
        finally:
            cursor.executemany("INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)", rows)
    assert code == 1
    assert owners["gateway"]["unapplied"] == {"outbox": sorted(name for _, name, _ in rows)}
    assert "run `manage.py migrate_owners gateway`" in text


def test_sessions_of_every_process_are_counted() -> None:
    core = owner_named("core")
    assert most(core, Processes(web=3, worker=4, machines=2)) == {
        Role.SCHEMA: 1,
        Role.OWNER: 15,
        Role.READ: 13,
        Role.DISPATCH: 17,
        Role.SESSION: 7,
    }
    small, large = (most_per_server(Processes(web=1, worker=number, machines=1)) for number in (2, 20))
    assert sum(small.values()) < 200 < sum(large.values())


def test_the_system_check_compares_the_sum_with_the_server(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    aliases = [owner.alias for owner in OWNERS]
    assert not [found for found in run_checks(databases=aliases, tags=["database"]) if found.id == "config.W001"]
    monkeypatch.setenv("WORKER_PROCESSES", "500")
    (found,) = [found for found in run_checks(databases=aliases, tags=["database"]) if found.id == "config.W001"]
    assert "database sessions, but 127.0.0.1" in found.msg
    assert checks.connections_are_enough(None, databases=[]) == []
