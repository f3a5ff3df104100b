"""The filesystem refuses in the middle: a clear error, the old file intact, quota given back, or a backup kept (F7)."""

import io
import os
import resource
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from django.db import connections

from attachments.files import stage
from attachments.files.errors import FilesError, PathInFlight, StorageFailed, StorageFull
from attachments.files.path import StoredPath
from attachments.files.receive import receive
from attachments.files.stage import StagedFiles
from attachments.files.sweep import Swept, sweep
from billing.commercial import hooks
from tests.commercial.make import subscribe, used_and_held
from tests.files.killing import prove, sweep_all
from tests.files.papers import ALIAS, Interrupted, agrees, intents, path_of, remove, stored, tree, write

pytestmark = [pytest.mark.spec("C5"), pytest.mark.trap("F7")]
ONE_MIB = 2**20
NOBODY = (65534, 65534) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
"""Whom a folder can be closed to: root enters all of them."""


def refused_in_a_process(
    call: Callable[[], object], error: type[FilesError], *, largest: int, user: tuple[int, int] | None = None
) -> None:
    """`call` raises `error` in a process that may not write files above so many bytes, as `user` if root may be it."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        try:
            if user is not None and os.geteuid() == 0:
                os.setresgid(user[1], user[1], user[1])
                os.setresuid(user[0], user[0], user[0])
            call()
        except error:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def quota() -> str:
    """A tenant with quota."""
    return subscribe(basis="bytes", tool="storage", dimension="attachment.upload", limit=10 * ONE_MIB).tenant_id


def test_no_room_while_receiving_leaves_the_old_file_and_no_rest(desk: Path) -> None:
    tenant_id = quota()
    write("a", b"old", tenant_id=tenant_id)
    refused_in_a_process(lambda: write("a", bytes(2 * ONE_MIB), tenant_id=tenant_id), StorageFull, largest=ONE_MIB)
    assert tree(desk) == stored(a=b"old")
    assert used_and_held() == (3, 0)
    prove(desk)


def test_a_folder_that_cannot_be_made_ends_the_upload_and_gives_quota_back(desk: Path) -> None:
    tenant_id = quota()
    write("a", b"old", tenant_id=tenant_id)
    obstacle = path_of("b", item="other").below(desk).parent
    obstacle.write_text("a file where a folder must be")
    with pytest.raises(StorageFailed, match=r"Not a directory|File exists"):
        write("b", b"new", item="other", tenant_id=tenant_id)
    obstacle.unlink()
    assert tree(desk) == stored(a=b"old")
    prove(desk)


def test_a_folder_that_may_not_be_entered_ends_the_change_and_what_is_in_it_stays(
    papers_table: None, database: None, settings: Any
) -> None:
    with TemporaryDirectory() as place:
        root = settings.ATTACHMENTS_ROOT = Path(place)
        settings.ATTACHMENTS_INCOMING = root / ".incoming"
        write("a", b"old")
        folder = path_of("a").below(root).parent
        shut = folder.stat()
        for one in (root, root / ".incoming", *folder.parents[:2]):
            os.chown(one, *NOBODY)
        folder.chmod(0)
        for call in (lambda: write("a", b"new"), lambda: remove(path_of("a"))):
            refused_in_a_process(call, StorageFailed, largest=ONE_MIB, user=NOBODY)
        folder.chmod(shut.st_mode)
        assert sweep_all().failed == 0
        assert tree(root) == stored(a=b"old")
        assert agrees(root)


def lose_what_was_received(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two renames of a replacement, the received file vanishes."""

    def lose(step: str) -> None:
        if step == "files.set_aside":
            for path in (desk / ".incoming").iterdir():
                path.unlink()

    monkeypatch.setattr("outbox.steps.hook", lose)


def test_refused_between_the_two_renames_the_old_file_comes_back(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant_id = quota()
    write("a", b"old", tenant_id=tenant_id)
    lose_what_was_received(desk, monkeypatch)
    with pytest.raises(StorageFailed, match="No such file"):
        write("a", b"new", tenant_id=tenant_id)
    assert tree(desk) == stored(a=b"old")
    assert intents()[-1] == ("place", "undone", "compensation")
    prove(desk)


def test_an_error_that_is_hidden_does_not_commit_half_a_change(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a", b"old")
    lose_what_was_received(desk, monkeypatch)
    with receive(io.BytesIO(b"new")) as new, hooks.business_transaction(using=ALIAS) as work, suppress(StorageFailed):
        StagedFiles(work).place(path_of("a"), new)
    assert tree(desk) == stored(a=b"old")
    assert intents()[-1] == ("place", "undone", "compensation")


def test_what_cannot_be_put_back_keeps_its_backup_and_its_intent_until_it_can(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a", b"old")
    path = path_of("a").below(desk)

    def obstruct() -> None:
        path.unlink()
        (path / "obstacle").mkdir(parents=True)
        raise Interrupted

    with pytest.raises(Interrupted):
        write("a", b"new", then=obstruct)
    (backup,) = [body for name, body in tree(desk).items() if name.endswith(".old")]
    assert backup == b"old"
    assert intents()[-1] == ("place", "open", None)
    with connections["attachments.read"].cursor() as cursor:
        cursor.execute("SELECT failures, last_failure FROM staged_file_intents WHERE state = 'open'")
        assert cursor.fetchall() == [(1, "IsADirectoryError")]
    monkeypatch.setattr(stage, "PATIENCE_SECONDS", 0.05)
    for attempt in (lambda: write("a", b"newest"), lambda: remove(path_of("a"))):
        with pytest.raises(PathInFlight):
            attempt()
    write("b", b"beside")
    assert sweep() == Swept(failed=1)
    shutil.rmtree(path)
    assert sweep() == Swept(undone=1)
    assert tree(desk) == stored(a=b"old", b=b"beside")
    assert agrees(desk)


def test_what_was_before_a_change_that_cannot_be_put_back_waits_for_it(desk: Path) -> None:
    write("a", b"old")
    path = path_of("a").below(desk)

    def obstruct() -> None:
        path.unlink()
        (path / "obstacle").mkdir(parents=True)
        raise Interrupted

    with pytest.raises(Interrupted), hooks.business_transaction(using=ALIAS):
        write("a", b"new")
        write("a", b"newer", then=obstruct)
    assert sweep() == Swept(failed=1, live=1)
    shutil.rmtree(path)
    assert sweep() == Swept(undone=2)
    assert tree(desk) == stored(a=b"old")


def test_a_backup_within_a_folder_that_cannot_be_put_back_is_not_forgotten(desk: Path) -> None:
    write("a", b"A")
    write("b", b"B")
    folder = path_of("a").below(desk).parent

    def obstruct() -> None:
        (folder / "obstacle").mkdir(parents=True)
        raise Interrupted

    with hooks.business_transaction(using=ALIAS):
        remove(path_of("a"))
        with pytest.raises(Interrupted), hooks.business_transaction(using=ALIAS):
            remove(StoredPath(path_of("a").ids[:3]), then=obstruct)
    assert [state for _, state, _ in intents()[2:]] == ["open", "open"]
    assert sweep() == Swept(failed=1, live=1)
    shutil.rmtree(folder)
    assert sweep() == Swept(undone=1, kept=1)
    assert tree(desk) == stored(b=b"B")
    assert agrees(desk)


def test_a_tree_that_lost_both_is_told_and_nothing_is_made_up(desk: Path) -> None:
    write("a", b"old")
    folder = path_of("a").below(desk).parent

    def lose() -> None:
        shutil.rmtree(folder)
        raise Interrupted

    with pytest.raises(Interrupted):
        write("a", b"new", then=lose)
    assert sweep() == Swept(failed=1)
    folder.mkdir()
    path_of("a").below(desk).write_bytes(b"old")
    assert sweep() == Swept(undone=1)
    assert tree(desk) == stored(a=b"old")
