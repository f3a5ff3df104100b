"""`manage.py delivery_sets register|activate|show` (O6, O7)."""

import io
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from config.owners import producers
from outbox.contracts.delivery_set import DeliverySetDefinition
from outbox.contracts.first_release import FIRST_RELEASE_VERSION, first_release
from outbox.register import active_definition
from tests.owners.places import elsewhere

RunCommand = Callable[..., subprocess.CompletedProcess[str]]
NEXT = "test-next"


def delivery_sets(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and the results by owner."""
    out = io.StringIO()
    code = 0
    try:
        call_command("delivery_sets", *arguments, "--json", stdout=out)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, json.loads(out.getvalue())


@pytest.fixture
def registry(database: None) -> Iterator[None]:
    """Afterwards only the first release is registered, and active."""
    yield
    for owner in producers():
        with connections[owner.schema_alias].cursor() as cursor:
            tables = "delivery_set_members", "delivery_set_events", "delivery_set_versions"
            cursor.execute("BEGIN")
            for table in tables:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            for table in tables:
                cursor.execute(f"DELETE FROM {table} WHERE delivery_set_version <> %s", [FIRST_RELEASE_VERSION])
            cursor.execute("UPDATE delivery_set_versions SET status = 'active'")
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for table in tables:
                cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
            cursor.execute("COMMIT")


def written(tmp_path: Path, definition: DeliverySetDefinition) -> str:
    path = tmp_path / "definition.json"
    path.write_bytes(definition.canonical() + b"\n")
    return str(path)


def changed(version: str = NEXT) -> DeliverySetDefinition:
    """The first release's members under another version."""
    return DeliverySetDefinition.define(version=version, members=first_release().members)


@pytest.mark.spec("O6", "O7")
def test_the_first_release_registers_again_without_any_change(registry: None) -> None:
    code, results = delivery_sets("register")
    assert code == 0
    assert set(results) == {owner.name for owner in producers()}
    assert not any(result["new"] for result in results.values())
    assert delivery_sets("activate", FIRST_RELEASE_VERSION) == (
        0,
        {
            owner.name: {
                "version": FIRST_RELEASE_VERSION, "changed": False, "says": f"{FIRST_RELEASE_VERSION} was active",
            }
            for owner in producers()
        },
    )  # fmt: skip


@pytest.mark.spec("O6")
def test_a_definition_from_a_file_is_registered_then_activated_and_the_old_one_retires(
    registry: None, tmp_path: Path
) -> None:
    file = written(tmp_path, changed())
    assert all(result["new"] for result in delivery_sets("register", "--file", file)[1].values())
    assert not any(result["new"] for result in delivery_sets("register", "--file", file)[1].values())
    assert active_definition(using="billing.read") == first_release()
    assert all(result["changed"] for result in delivery_sets("activate", NEXT)[1].values())
    assert active_definition(using="billing.read") == changed()
    _, shown = delivery_sets("show")
    assert {version["version"]: version["status"] for result in shown.values() for version in result["versions"]} == {
        FIRST_RELEASE_VERSION: "retired",
        NEXT: "active",
    }
    code, refused = delivery_sets("activate", FIRST_RELEASE_VERSION)
    assert code == 1
    assert all("is retired. Register a new version." in result["error"] for result in refused.values())


@pytest.mark.spec("O6")
def test_other_content_under_a_registered_version_is_refused_and_nothing_changes(
    registry: None, tmp_path: Path
) -> None:
    other = DeliverySetDefinition.define(version=FIRST_RELEASE_VERSION, members=first_release().members[:3])
    code, results = delivery_sets("register", "--file", written(tmp_path, other))
    assert code == 1
    assert all("Choose a new version." in result["error"] for result in results.values())
    assert active_definition(using="default.read") == first_release()


@pytest.mark.spec("O6")
def test_one_owner_only(registry: None, tmp_path: Path) -> None:
    code, results = delivery_sets("register", "--file", written(tmp_path, changed()), "--owner", "billing")
    assert (code, set(results)) == (0, {"billing"})
    code, results = delivery_sets("activate", NEXT)
    assert code == 1
    assert "error" not in results["billing"]
    assert "is not registered in 'metering.schema'. Register it first." in results["metering"]["error"]


@pytest.mark.spec("O6")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"memberCount":14', '"memberCount":13'), "memberCount differs"),
        (lambda text: text.replace('"applicableEventCount":13', '"applicableEventCount":12'), "applicableEventCount"),
        (lambda text: text.replace('"mandatory":true', '"mandatory":false', 1), "does not match the content"),
        (lambda text: text.replace('"core_operations"', '"somewhere"', 1), "destination"),
        (lambda text: text.replace(":", ": ", 1), "RFC 8785"),
        (lambda text: text[:-10], "JSON"),
    ],
)
def test_a_broken_file_is_refused_with_the_rule_it_breaks(
    change: Callable[[str], str], said: str, database: None, tmp_path: Path
) -> None:
    path = tmp_path / "definition.json"
    path.write_text(change(first_release().canonical().decode()))
    with pytest.raises(CommandError, match=said) as refused:
        call_command("delivery_sets", "register", "--file", str(path))
    assert "Nothing was registered." in str(refused.value)


def test_a_file_that_is_not_there_is_named(database: None) -> None:
    with pytest.raises(CommandError, match=r"/nowhere/definition\.json cannot be read"):
        call_command("delivery_sets", "register", "--file", "/nowhere/definition.json")


@pytest.mark.spec("O7")
def test_show_lists_the_members_of_a_version(database: None, run_command: RunCommand) -> None:
    done = run_command("delivery_sets", "show", FIRST_RELEASE_VERSION, "--owner", "billing")
    assert done.returncode == 0
    assert done.stdout.count(" → ") == 14
    assert "run.created@2.0 → core_operations (operations_projector)" in done.stdout
    code, results = delivery_sets("show", "nothing", "--owner", "core")
    assert code == 1
    assert "'nothing' is not registered" in results["core"]["error"]


def test_a_server_that_is_down_is_said_for_its_owner_only(database: None, run_django: RunCommand) -> None:
    done = run_django("delivery_sets", "show", env=elsewhere("metering"))
    assert done.returncode == 1
    assert "metering: the database refused or did not answer" in done.stdout
    assert f"billing: {FIRST_RELEASE_VERSION} active" in done.stdout
