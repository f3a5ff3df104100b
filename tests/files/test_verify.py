"""`manage.py verify` compares the stored tree with its journal: what is broken is named, what is at work is not."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from config.verify import stored_files
from config.verify.stored_files import kept_files_stand, nothing_else_stands
from tests.files.killing import killed_at
from tests.files.papers import path_of, remove, write
from tests.upstream.threads import stopped_at

pytestmark = [pytest.mark.spec("C5", "C9")]
STEPS = ("files.journaled", "files.set_aside", "files.placed", "papers.row", "commercial.committed", "files.dropped")


def found() -> tuple[list[str], list[str]]:
    """The subjects that each of the two checks names."""
    missing, stray = kept_files_stand(), nothing_else_stands()
    assert (missing.violations, stray.violations) == (len(missing.samples), len(stray.samples))
    return [one.subject for one in missing.samples], [one.subject for one in stray.samples]


def test_what_is_gone_or_changed_or_nobodys_is_named(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_files, "BATCH_FILES", 2)
    for name in "abcdef":
        write(name, name.encode())
    write("a", b"again")
    remove(path_of("f"))
    assert found() == ([], [])
    assert kept_files_stand().examined == nothing_else_stands().examined == 5
    path_of("a").below(desk).unlink()
    path_of("b").below(desk).write_bytes(b"longer")
    folder = path_of("c").below(desk).parent
    (folder / "named.pdf").write_bytes(b"nobody's")
    (folder / f".{uuid4()}.{uuid4()}.old").write_bytes(b"a backup of nothing")
    path_of("f").below(desk).write_bytes(b"back again")
    (folder / str(uuid4())).mkdir()
    (folder / f".{uuid4()}.{uuid4()}.old" / "inside").mkdir(parents=True)
    (next(folder.glob(".*.old/inside")) / "it").write_bytes(b"within a backup of nothing")
    missing, stray = found()
    assert sorted(missing) == sorted([path_of("a").text, path_of("b").text])
    assert len(stray) == 4


@pytest.mark.parametrize("what", ["replace", "remove"])
def test_what_is_at_work_or_was_left_is_not_reported(desk: Path, what: str) -> None:
    for number, step in enumerate(STEPS):
        claim = str(number)
        if (what, step) == ("remove", "files.placed"):
            continue
        write("a", b"old", claim=claim)
        change: Callable[[], object] = partial(write, "a", b"new!", claim=claim)
        if what == "remove":
            change = partial(remove, path_of("a", claim=claim))
        with stopped_at(step, change) as work:
            assert found() == ([], []), step
            work.go_on()
        write("b", b"old", claim=claim)
        killed_at(step, partial(write, "b", b"new!", claim=claim))
        assert found() == ([], []), step
