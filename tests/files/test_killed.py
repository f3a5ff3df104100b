"""kill -9 at every step of every change: one sweep, and tree, database and quota agree (C9, F4)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from attachments.files.path import StoredPath
from attachments.files.sweep import Swept, sweep
from tests.commercial.make import subscribe
from tests.files.killing import killed_at, prove, sweep_all
from tests.files.papers import agrees, fail, intents, of_claim, path_of, remove, stored, write
from tests.upstream.threads import stopped_at

pytestmark = [pytest.mark.spec("C9"), pytest.mark.trap("F4")]
BEFORE = {"a": b"old", "b": b"other"}
AFTER = {
    "upload": {**BEFORE, "c": b"new"},
    "replace": {**BEFORE, "a": b"new"},
    "remove": {"b": b"other"},
    "empty": {},
}


def change(what: str, claim: str, tenant_id: str, then: Callable[[], None] | None = None) -> Callable[[], object]:
    """One of the four changes that there are."""
    name = {"upload": "c"}.get(what, "a")
    path = path_of(name, claim=claim)
    if what in {"upload", "replace"}:
        return partial(write, name, b"new", claim=claim, tenant_id=tenant_id, request=claim, then=then)
    return partial(remove, path if what == "remove" else StoredPath(path.ids[:3]), then=then)


RECEIVED = ("files.received", "commercial.reserved", "commercial.marked")
JOURNALED = ("files.marked", "files.journaled")
ROW = ("papers.row", "commercial.before_commit")
BEFORE_COMMIT = {
    "upload": (*RECEIVED, *JOURNALED, "files.placed", *ROW),
    "replace": ("files.received", *JOURNALED, "files.set_aside", "files.placed", *ROW),
    "remove": (*JOURNALED, "files.set_aside", *ROW),
    "empty": (*JOURNALED, "files.set_aside", *ROW),
}
BEGUN = ("files.journaled", "files.set_aside", "files.placed", *ROW)
AFTER_COMMIT = ("commercial.committed", "files.dropped", "files.ended")
AFTER_ROLLBACK = ("commercial.rolled_back", "files.restored", "files.ended")


@pytest.fixture
def tenant_id(desk: Path) -> str:
    """A tenant with quota."""
    return subscribe(basis="bytes", tool="storage", dimension="attachment.upload", limit=1000).tenant_id


def begin(claim: str, tenant_id: str) -> None:
    """Two papers of a claim of its own."""
    for name, body in BEFORE.items():
        write(name, body, claim=claim, tenant_id=tenant_id)


@pytest.mark.spec("C5")
@pytest.mark.parametrize("what", AFTER)
def test_killed_before_the_commit_everything_is_as_it_was(desk: Path, tenant_id: str, what: str) -> None:
    for step in BEFORE_COMMIT[what]:
        begin(step, tenant_id)
        killed_at(step, change(what, step, tenant_id))
        assert sweep_all().undone == (step in BEGUN), step
        assert of_claim(step, desk) == stored(step, **BEFORE), step
        prove(desk)


@pytest.mark.spec("C5")
@pytest.mark.parametrize("what", AFTER)
def test_killed_after_the_commit_the_change_stands(desk: Path, tenant_id: str, what: str) -> None:
    for step in AFTER_COMMIT:
        if (what, step) != ("upload", "files.dropped"):  # it has nothing to drop
            begin(step, tenant_id)
            killed_at(step, change(what, step, tenant_id))
            assert sweep_all().kept == (step != "files.ended"), step
            assert of_claim(step, desk) == stored(step, **AFTER[what]), step
            prove(desk)


@pytest.mark.spec("C5")
@pytest.mark.parametrize("what", AFTER)
def test_killed_while_it_rolls_back_everything_is_as_it_was(desk: Path, tenant_id: str, what: str) -> None:
    for step in AFTER_ROLLBACK:
        begin(step, tenant_id)
        killed_at(step, change(what, step, tenant_id, fail))
        assert sweep_all().undone == (step != "files.ended"), step
        assert of_claim(step, desk) == stored(step, **BEFORE), step
        prove(desk)


def test_a_sweep_that_is_killed_is_finished_by_the_next_one(desk: Path, tenant_id: str) -> None:
    for step, killed_sweep, left in (
        ("commercial.committed", "files.dropped", {}),
        ("commercial.before_commit", "files.restored", BEFORE),
    ):
        begin(step, tenant_id)
        killed_at(step, change("empty", step, tenant_id))
        killed_at(killed_sweep, sweep_all)
        sweep_all()
        assert of_claim(step, desk) == stored(step, **left)
        prove(desk)


@pytest.mark.parametrize(("step", "left"), [("papers.row", "undone"), ("commercial.committed", "kept")])
def test_the_next_change_goes_on_without_waiting_for_the_sweep(
    desk: Path, tenant_id: str, step: str, left: str
) -> None:
    for what, after in AFTER.items():
        begin(what, tenant_id)
        killed_at(step, change(what, what, tenant_id))
        write("c", b"newest", claim=what)
        write("a", b"latest", claim=what)
        found = {**(BEFORE if left == "undone" else after), "a": b"latest", "c": b"newest"}
        assert of_claim(what, desk) == stored(what, **found)
        assert ("place" if what in {"upload", "replace"} else "remove", left, "successor") in intents()
    assert agrees(desk)
    assert sweep() == Swept()


def test_the_sweep_never_touches_a_live_upload(desk: Path) -> None:
    for step in ("files.received", *BEGUN, "commercial.committed", "files.ended"):
        write("a", b"old", claim=step)
        with stopped_at(step, partial(write, "a", b"new", claim=step)) as upload:
            found = sweep()
            assert (found.undone, found.incoming, found.failed) == (0, 0, 0), step
            upload.go_on()
        assert of_claim(step, desk) == stored(step, a=b"new"), step
        assert sweep() == Swept(), step
    assert agrees(desk)
