"""The commands create clusters, set their ramp and rate, import keys, and mint administrators."""

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from metering.clusters.authenticate import authenticate
from metering.clusters.managed_keys import organizations_of
from metering.clusters.models import Cluster
from metering.clusters.secret_store import FileStore, Slot
from tests.clusters.conftest import audited, database_time, outcome

pytestmark = [pytest.mark.usefixtures("database", "store")]


def run(*arguments: str) -> str:
    """What the command says."""
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def create(cluster: str = "7", *more: str) -> str:
    return run("clusters", "create", cluster, "--name", f"cluster {cluster}", "--mode", "gateway", *more)


@pytest.mark.spec("T9", "T12")
def test_a_cluster_gets_its_sink_and_rate_with_the_next_request() -> None:
    assert "created" in create()
    header = b"Bearer " + run("otlp_tokens", "rotate", "7").strip().encode()

    def now_set() -> tuple[Any, ...]:
        found = authenticate(header, database_time())
        return found.sink, found.rate_per_second, found.rate_burst

    assert now_set() == (None, None, None)
    for sink in ("logging", "fanout", "timescale"):
        assert "changed" in run("clusters", "set", "7", "--sink", sink)
        assert now_set() == (sink, None, None)
    run("clusters", "set", "7", "--rate", "50", "--burst", "70")
    assert now_set() == ("timescale", 50, 70)
    assert "nothing changed" in run("clusters", "set", "7", "--rate", "50", "--burst", "70")
    run("clusters", "set", "7", "--rate", "default", "--sink", "default")
    assert now_set() == (None, None, None)
    assert audited(action="cluster_changed") == ["cluster_changed"] * 5
    assert "cluster 7  mode gateway  sink default  rate default" in run("clusters", "list")


def test_creating_a_cluster_again_changes_nothing_and_as_another_one_is_refused() -> None:
    create("7", "--sink", "fanout", "--rate", "5", "--burst", "6")
    assert "as you say" in create("7", "--sink", "fanout", "--rate", "5", "--burst", "6")
    with pytest.raises(CommandError, match="exists"):
        create("7", "--sink", "logging")
    with pytest.raises(CommandError, match="exists"):
        run("clusters", "create", "8", "--name", "cluster 7", "--mode", "gateway")
    assert audited() == ["cluster_created"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "99", "--sink", "fanout"), "no such cluster"),
        (("create", "0", "--name", "x", "--mode", "gateway"), "cluster_id_positive"),
        (("create", "8", "--name", " \n", "--mode", "gateway"), "cluster_name"),
        (("create", "8", "--name", "a\x00b", "--mode", "gateway"), "refused"),
        (("create", str(2**63), "--name", "x", "--mode", "gateway"), "refused"),
        (("set", str(2**63), "--sink", "fanout"), "no such cluster"),
        (("set", "7", "--rate", str(2**31), "--burst", "5"), "refused"),
        (("create", "8", "--name", "x", "--mode", "both"), "invalid choice"),
        (("create", "8", "--name", "x"), "required"),
        (("set", "7", "--sink", "nowhere"), "invalid choice"),
        (("set", "7", "--rate", "5"), "together"),
        (("set", "7", "--burst", "5"), "together"),
        (("set", "7", "--rate", "fast", "--burst", "5"), "together"),
        (("set", "7", "--rate", "0", "--burst", "5"), "cluster_rate_whole"),
    ],
)
def test_what_a_cluster_cannot_be_is_refused_with_advice(arguments: tuple[str, ...], message: str) -> None:
    create()
    with pytest.raises(CommandError, match=message):
        run("clusters", *arguments)
    assert Cluster.objects.using("metering.read").count() == 1


@pytest.mark.spec("T2")
def test_tokens_are_rotated_listed_and_revoked_by_command_too() -> None:
    create()
    first, second = (run("otlp_tokens", "rotate", "7").strip() for _ in range(2))
    run("otlp_tokens", "rotate", "7", "--mode", "per_cluster")
    listed = run("otlp_tokens", "list", "7")
    assert [line.split()[1:4] for line in listed.splitlines()] == [
        ["per_cluster", "primary", "accepted"],
        ["gateway", "superseded", "accepted"],
        ["gateway", "superseded", "accepted"],
    ]
    assert first not in listed
    token_id = listed.splitlines()[-1].split()[0]
    assert "revoked" in run("otlp_tokens", "revoke", "7", token_id)
    assert "nothing changed" in run("otlp_tokens", "revoke", "7", token_id)
    assert outcome(b"Bearer " + first.encode(), database_time()) == "token_revoked"
    assert outcome(b"Bearer " + second.encode(), database_time()) == "accepted"
    with pytest.raises(CommandError, match="no such token"):
        run("otlp_tokens", "revoke", "8", token_id)


@pytest.mark.trap("T10")
def test_the_check_finds_a_store_that_gives_collectors_something_else(store: FileStore) -> None:
    for cluster in ("7", "8", "9", "10", "11"):
        create(cluster)
    for cluster in ("7", "8", "9", "10"):
        run("otlp_tokens", "rotate", cluster)
    assert run("otlp_tokens", "check") == "0 disagreements\n"
    old = store.read(cluster_id=7, slot=Slot.PRIMARY)
    run("otlp_tokens", "rotate", "7")
    store.write(cluster_id=7, slot=Slot.PRIMARY, secret=str(old))
    store.write(cluster_id=8, slot=Slot.PRIMARY, secret=str(old))
    run("otlp_tokens", "revoke", "9", run("otlp_tokens", "list", "9").split()[0])
    store.write(cluster_id=10, slot=Slot.PRIMARY, secret="")
    out = io.StringIO()
    with pytest.raises(SystemExit, match="1"):
        call_command("otlp_tokens", "check", stdout=out)
    for cluster_id, words in ((7, "superseded until"), (8, "none of this cluster"), (9, "refused"), (10, "holds no")):
        assert f"cluster {cluster_id}: the store" in out.getvalue()
        assert words in out.getvalue()
    assert "4 disagreements" in out.getvalue()
    for cluster in ("7", "8", "9", "10"):
        run("otlp_tokens", "rotate", cluster)
    assert run("otlp_tokens", "check") == "0 disagreements\n"


@pytest.mark.spec("T13")
def test_managed_keys_come_from_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    path.write_text("\ufeffmanager_key_id,label,organization_id\r\n1,first,org-1\r\n2,,org-2\r\n", encoding="utf-8")
    assert "2 keys read, 2 of them new" in run("managed_keys", "import", str(path))
    assert "2 keys read, 0 of them new" in run("managed_keys", "import", str(path))
    assert "added" in run("managed_keys", "add", "3", "org-1", "--label", "third")
    assert "known already" in run("managed_keys", "add", "3", "org-1", "--label", "third")
    assert organizations_of(["1", "2", "3"]) == {"1": "org-1", "2": "org-2", "3": "org-1"}
    assert run("managed_keys", "show", "3") == "key 3  organization org-1  third\n"
    with pytest.raises(SystemExit, match="1"):
        run("managed_keys", "show", "4")
    with pytest.raises(CommandError, match="another organisation"):
        run("managed_keys", "add", "3", "org-2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "heading"),
        (b"manager_key_id\n1\n", "heading"),
        (b"manager_key_id,organization_id,secret\n1,o,x\n", "heading"),
        (b"manager_key_id,organization_id\n1,o\n2\n", "line 3"),
        (b"manager_key_id,organization_id\n1,o,more\n", "line 2"),
        (b"manager_key_id,organization_id\n1,o\nx,o\n", "nothing was imported"),
        (b"manager_key_id,organization_id\n1,\xff\n", "UTF-8"),
        (b'manager_key_id,organization_id\n1,"o\n', "CSV"),
        (b"manager_key_id,organization_id\n1,a\x00b\n", "nothing was imported"),
        (None, "Cannot read"),
    ],
)
def test_a_file_that_is_none_imports_nothing(tmp_path: Path, text: bytes | None, message: str) -> None:
    path = tmp_path / "keys.csv"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(CommandError, match=message):
        run("managed_keys", "import", str(path))
    assert organizations_of(["1"]) == {}


@pytest.mark.spec("T2")
def test_an_administrator_is_minted_by_command_and_cannot_log_in() -> None:
    assert "may now manage" in run("administrator", "grant", "robot")
    assert "may already manage" in run("administrator", "grant", "robot")
    account = User.objects.using("default").get(username="robot")
    assert (account.is_staff, account.is_superuser, account.has_usable_password()) == (False, False, False)
    assert account.get_all_permissions() == {"clusters.manage_otlp_tokens"}
    token = run("administrator", "mint", "robot", "--days", "2").strip()
    assert token.startswith("otlpadmin_")
    listed = run("administrator", "list").splitlines()
    assert listed[0] == "robot"
    assert (database_time() + timedelta(days=2)).strftime("%Y-%m-%d") in listed[1]
    assert token not in "\n".join(listed)
    assert run("administrator", "end", listed[1].split()[0]) == "ended\n"
    assert "nothing changed" in run("administrator", "end", listed[1].split()[0])
    run("administrator", "mint", "robot")
    run("administrator", "withdraw", "robot")
    assert run("administrator", "list") == ""
    assert audited() == [
        "administrator_granted", "administrator_granted", "administrator_token_minted", "administrator_token_revoked",
        "administrator_token_minted", "administrator_withdrawn", "administrator_token_revoked",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mint", "nobody"), "administrator grant"),
        (("mint", "looker"), "administrator grant"),
        (("withdraw", "nobody"), "no such account"),
        (("grant", "no spaces"), "no login name"),
        (("grant", ""), "no login name"),
        (("end", "00000000-0000-0000-0000-000000000000"), "no administrator has such a token"),
        (("mint", "looker", "--days", "0"), "1 to 366"),
        (("mint", "looker", "--days", "367"), "1 to 366"),
    ],
)
def test_who_is_no_administrator_gets_no_token(arguments: tuple[str, ...], message: str) -> None:
    User(username="looker", is_staff=True).save(using="default")
    with pytest.raises(CommandError, match=message):
        run("administrator", *arguments)


def test_without_a_database_the_commands_say_what_to_do(
    run_django: Callable[..., CompletedProcess[str]],
) -> None:
    environment = {"DATABASE_URL_CORE_OWNER": "postgres://a:b@127.0.0.1:1/c"}
    done = run_django("administrator", "list", env=environment)
    assert done.returncode == 1
    assert "migrate_owners" in done.stderr
    assert "Traceback" not in done.stderr
