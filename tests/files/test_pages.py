"""What operators see of the stored tree: each change, what is open, what could not be ended; ids and nothing else."""

from pathlib import Path

import pytest
from django.test import Client

from tests.admin.conftest import client, looker, make_operator, quick_hashes, static_files
from tests.admin.crawl import links, watching
from tests.commercial_pages.test_pages import text_of
from tests.files.killing import killed_at
from tests.files.papers import Interrupted, path_of, write

__all__ = ["client", "looker", "make_operator", "quick_hashes", "static_files"]

MOST_STATEMENTS = 9
LIST = "/admin/attachments/staged-files/"


@pytest.mark.spec("C5", "C9")
def test_changes_are_shown_with_how_they_ended_and_what_is_open_can_be_picked(looker: Client, desk: Path) -> None:
    assert "No rows." in text_of(looker.get(LIST))
    write("a", b"old")
    path = path_of("a").below(desk)

    def obstruct() -> None:
        path.unlink()
        (path / "in the way").mkdir(parents=True)
        raise Interrupted

    with pytest.raises(Interrupted):
        write("a", b"new", then=obstruct)
    killed_at("commercial.before_commit", lambda: write("b", b"b", claim="other"))
    with watching() as ran:
        listed = looker.get(LIST)
        assert len(ran) <= MOST_STATEMENTS
        assert {one.alias for one in ran if "staged_file" in one.sql} == {"attachments.read"}
    assert len(listed.context["table"].rows) == 3
    assert "1 IsADirectoryError" in text_of(listed)
    opened = looker.get(f"{LIST}?queue=open").context["table"].rows
    assert len(opened) == 2
    kept = listed.context["table"].rows[-1]
    page = looker.get(kept[0].url)
    shown = text_of(page)
    for text in ("Kept", path_of("a").text, "Completion"):
        assert text in shown
    marks = "/admin/attachments/markers/"
    marker = next(link for link in links(page.content.decode()) if link.startswith(marks) and link != marks)
    assert "Committed" in text_of(looker.get(marker))
    assert "Open" in text_of(looker.get(opened[0][0].url))
