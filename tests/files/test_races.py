"""Changes of one path at the same time: one after the other, or an error that may be repeated (M10)."""

from functools import partial
from pathlib import Path

import pytest
from django.db import DatabaseError, InterfaceError, connections

from attachments.files import stage
from attachments.files.errors import PathInFlight
from attachments.files.path import StoredPath
from attachments.files.sweep import Swept, sweep
from tests.commercial.make import subscribe
from tests.files.killing import prove, sweep_all
from tests.files.papers import agrees, intents, path_of, remove, rows, stored, tree, write
from tests.upstream.threads import in_threads, stopped_at

pytestmark = [pytest.mark.spec("C5")]


@pytest.mark.trap("M10")
def test_the_same_file_removed_in_parallel_is_removed_once(desk: Path) -> None:
    write("a", b"one")
    write("b", b"two")
    assert sorted(in_threads([partial(remove, path_of("a"))] * 4)) == [False, False, False, True]
    assert tree(desk) == stored(b=b"two")
    assert [action for action, _, _ in intents()].count("remove") == 1
    assert agrees(desk)


@pytest.mark.trap("M10")
def test_a_file_an_item_and_a_claim_removed_in_parallel_go_once(desk: Path) -> None:
    for name in "abcd":
        write(name, name.encode())
    ids = path_of("a").ids
    in_threads([partial(remove, StoredPath(ids[:length])) for length in (2, 3, 4)])
    assert tree(desk) == {}
    assert agrees(desk)
    assert sweep() == Swept()


def test_uploads_of_one_file_in_parallel_end_with_one_of_them(desk: Path) -> None:
    tenant_id = subscribe(basis="bytes", tool="storage", dimension="attachment.upload", limit=1000).tenant_id
    bodies = [b"x" * size for size in (5, 6, 7)]
    in_threads([partial(write, "a", body, tenant_id=tenant_id) for body in bodies])
    assert tree(desk)[path_of("a").text] in bodies
    prove(desk)


def test_uploads_of_several_files_of_one_claim_do_not_wait_for_each_other(desk: Path) -> None:
    with stopped_at("papers.row", partial(write, "a", b"one")) as upload:
        write("b", b"two")
        assert set(rows()) == {path_of("b").text}
        upload.go_on()
    assert tree(desk) == stored(a=b"one", b=b"two")
    assert agrees(desk)


def test_what_is_being_changed_is_refused_to_others_and_may_be_repeated(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "PATIENCE_SECONDS", 0.05)
    write("a", b"old")
    ids = path_of("a").ids
    with stopped_at("papers.row", partial(write, "a", b"new")) as upload:
        for length in (2, 3, 4):
            with pytest.raises(PathInFlight):
                remove(StoredPath(ids[:length]))
        upload.go_on()
    assert tree(desk) == stored(a=b"new")
    assert remove(path_of("a"))
    assert tree(desk) == {}


@pytest.mark.spec("C9")
@pytest.mark.trap("F4")
@pytest.mark.parametrize("step", ["files.journaled", "files.placed", "papers.row"])
def test_a_transaction_that_lost_its_session_is_taken_back_and_goes_no_further(desk: Path, step: str) -> None:
    write("a", b"old")
    with stopped_at(step, partial(write, "a", b"new")) as upload:
        with connections["attachments"].cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE usename = current_user AND pid <> pg_backend_pid() AND datname = current_database()"
            )
            assert cursor.fetchall() == [(True,)]
        found = sweep()
        holds_its_intent = step == "files.placed"
        assert (found.live, found.undone) == ((1, 0) if holds_its_intent else (0, 1))
        with pytest.raises((PathInFlight, DatabaseError, InterfaceError)):
            upload.go_on()
    sweep_all()
    assert tree(desk) == stored(a=b"old")
    assert agrees(desk)
