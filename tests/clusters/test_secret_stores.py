"""The file store and the Infisical adapter keep what they are given, and say so when they do not."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from metering.clusters.checks import secret_store_can_be_made
from metering.clusters.errors import RotationUnsettled
from metering.clusters.rotate import rotate
from metering.clusters.secret_store import FileStore, InfisicalStore, SecretStore, SecretStoreFailed, Slot, secret_store
from tests.clusters.conftest import ACTOR, database_time, outcome
from tests.clusters.infisical_server import ENVIRONMENT, IDENTITY, PROJECT, Kept, infisical

pytestmark = [pytest.mark.spec("T2")]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """An Infisical server, and the settings that lead to it."""
    with infisical() as kept:
        monkeypatch.setenv("INFISICAL_HOST", kept.url)
        monkeypatch.setenv("INFISICAL_CLIENT_ID", IDENTITY["clientId"])
        monkeypatch.setenv("INFISICAL_CLIENT_SECRET", IDENTITY["clientSecret"])
        monkeypatch.setenv("INFISICAL_PROJECT_ID", PROJECT)
        monkeypatch.setenv("INFISICAL_ENVIRONMENT", ENVIRONMENT)
        yield kept


@pytest.fixture(params=["file", "infisical"])
def make(request: pytest.FixtureRequest) -> Callable[[], SecretStore]:
    """Make the store anew, as each rotation does."""
    request.getfixturevalue({"file": "store", "infisical": "server"}[request.param])
    kinds: dict[str, Callable[[], SecretStore]] = {"file": FileStore, "infisical": InfisicalStore}
    return kinds[request.param]


def test_a_store_keeps_each_slot_of_each_cluster_apart(make: Callable[[], SecretStore]) -> None:
    assert make().read(cluster_id=7, slot=Slot.PRIMARY) is None
    wanted = {(cluster, slot): f"otlp_{cluster}-{slot}" for cluster in (7, 77) for slot in Slot}
    for (cluster, slot), secret in wanted.items():
        make().write(cluster_id=cluster, slot=slot, secret=secret)
    assert {place: make().read(cluster_id=place[0], slot=place[1]) for place in wanted} == wanted
    make().write(cluster_id=7, slot=Slot.PRIMARY, secret="another")
    assert make().read(cluster_id=7, slot=Slot.PRIMARY) == "another"
    assert make().read(cluster_id=7, slot=Slot.SECONDARY) == wanted[7, Slot.SECONDARY]


def test_a_rotation_through_either_store_hands_over_both_slots(cluster: int, make: Callable[[], SecretStore]) -> None:
    first, second = (rotate(cluster_id=cluster, actor=ACTOR, store=make()) for _ in range(2))
    assert make().read(cluster_id=7, slot=Slot.PRIMARY) == second.plaintext.text
    assert make().read(cluster_id=7, slot=Slot.SECONDARY) == first.plaintext.text


def test_files_are_for_their_owner_only_whatever_the_umask(store: FileStore, settings: Any) -> None:
    before = os.umask(0)
    try:
        store.write(cluster_id=7, slot=Slot.PRIMARY, secret="x")
    finally:
        os.umask(before)
    root = Path(settings.OTLP_SECRET_DIR)
    modes = {path.relative_to(root).as_posix(): path.stat().st_mode & 0o777 for path in (root, *root.rglob("*"))}
    assert modes == {".": 0o700, "7": 0o700, "7/PRIMARY_TOKEN": 0o600}


def test_a_file_that_others_can_read_is_not_believed(store: FileStore, settings: Any) -> None:
    store.write(cluster_id=7, slot=Slot.PRIMARY, secret="x")
    path = Path(settings.OTLP_SECRET_DIR) / "7" / "PRIMARY_TOKEN"
    path.chmod(0o640)
    with pytest.raises(SecretStoreFailed, match="chmod 600"):
        store.read(cluster_id=7, slot=Slot.PRIMARY)
    store.write(cluster_id=7, slot=Slot.PRIMARY, secret="y")
    assert store.read(cluster_id=7, slot=Slot.PRIMARY) == "y"


def test_a_place_that_cannot_be_written_or_read_says_which_slot(store: FileStore, settings: Any) -> None:
    root = Path(settings.OTLP_SECRET_DIR)
    root.parent.mkdir(parents=True, exist_ok=True)
    root.write_text("a file where the directory should be")
    with pytest.raises(SecretStoreFailed, match="PRIMARY_TOKEN of cluster 7"):
        store.write(cluster_id=7, slot=Slot.PRIMARY, secret="x")
    with pytest.raises(SecretStoreFailed, match="PRIMARY_TOKEN of cluster 7"):
        store.read(cluster_id=7, slot=Slot.PRIMARY)


@pytest.mark.trap("T11")
@pytest.mark.parametrize("status", [400, 403, 500])
def test_an_infisical_that_refuses_is_a_failure_that_quotes_nothing(server: Kept, status: int) -> None:
    server.status = status
    with pytest.raises(SecretStoreFailed, match=f"status {status}") as failed:
        InfisicalStore().write(cluster_id=7, slot=Slot.PRIMARY, secret="otlp_secret")
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__
    assert "otlp_secret" not in repr(failed.value)


def test_a_wrong_identity_is_a_failure(server: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFISICAL_CLIENT_SECRET", "wrong")
    with pytest.raises(SecretStoreFailed, match="status 401"):
        InfisicalStore().read(cluster_id=7, slot=Slot.PRIMARY)


def test_an_infisical_that_never_answers_ends_within_its_bound_and_ends_no_token(
    cluster: int, server: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rotate(cluster_id=cluster, actor=ACTOR, store=InfisicalStore())
    monkeypatch.setattr("metering.clusters.secret_store.infisical_store.CALL_SECONDS", 0.05)
    monkeypatch.setattr("metering.clusters.secret_store.infisical_store.ALL_SECONDS", 0.1)
    server.hangs = True
    with pytest.raises(RotationUnsettled, match="did not answer within"):
        rotate(cluster_id=cluster, actor=ACTOR, store=InfisicalStore())
    header = b"Bearer " + first.plaintext.text.encode()
    assert outcome(header, database_time()) == "accepted"


def test_nothing_is_read_from_a_cache_of_the_sdk(server: Kept) -> None:
    store = InfisicalStore()
    store.write(cluster_id=7, slot=Slot.PRIMARY, secret="one")
    assert store.read(cluster_id=7, slot=Slot.PRIMARY) == "one"
    server.secrets["/otlp/7", "PRIMARY_TOKEN"] = "two"
    assert store.read(cluster_id=7, slot=Slot.PRIMARY) == "two"


def test_the_settings_choose_the_store_and_a_wrong_choice_is_found_at_start(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(secret_store(), FileStore)
    assert secret_store_can_be_made(None) == []
    settings.OTLP_SECRET_STORE = "metering.clusters.secret_store.InfisicalStore"
    monkeypatch.delenv("INFISICAL_CLIENT_ID", raising=False)
    (error,) = secret_store_can_be_made(None)
    assert "INFISICAL_CLIENT_ID is not set" in str(error.msg)
    settings.OTLP_SECRET_STORE = "metering.clusters.secret_store.NoStore"
    (error,) = secret_store_can_be_made(None)
    assert "NoStore" in str(error.msg)


def test_without_its_sdk_the_adapter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "infisical_sdk", None)
    with pytest.raises(ImproperlyConfigured, match="requirements-infisical"):
        InfisicalStore()


def test_the_sdk_is_loaded_only_where_it_is_chosen(run_django: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = "import sys, metering.clusters.rotate; print('infisical_sdk' in sys.modules, 'requests' in sys.modules)"
    done = run_django("shell", "--no-imports", "-v0", "-c", code)
    assert done.stdout.split()[-2:] == ["False", "False"], done.stdout + done.stderr
