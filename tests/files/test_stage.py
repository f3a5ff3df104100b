"""Files follow the transaction: a commit leaves what was placed, anything else leaves the tree as it was (C5, F3)."""

from pathlib import Path

import pytest

from attachments.files.read import open_stored
from attachments.files.sweep import Swept, sweep
from billing.commercial import hooks
from tests.files.papers import ALIAS, Interrupted, agrees, fail, intents, path_of, remove, stored, tree, write


@pytest.mark.spec("C5")
def test_a_committed_upload_stands_and_leaves_nothing_beside_it(desk: Path) -> None:
    write("a", b"one")
    assert tree(desk) == stored(a=b"one")
    assert intents() == [("place", "kept", "completion")]
    assert agrees(desk)
    assert sweep() == Swept()


@pytest.mark.spec("C5")
def test_a_replacement_that_rolls_back_leaves_the_old_file(desk: Path) -> None:
    write("a", b"one")
    with pytest.raises(Interrupted):
        write("a", b"two", then=fail)
    assert tree(desk) == stored(a=b"one")
    assert intents()[1:] == [("place", "undone", "compensation")]


@pytest.mark.spec("C5")
def test_a_first_upload_that_rolls_back_leaves_no_file_and_no_folder(desk: Path) -> None:
    with pytest.raises(Interrupted):
        write("a", b"one", then=fail)
    assert tree(desk) == {}


@pytest.mark.spec("C5")
@pytest.mark.trap("F3")
def test_three_writes_in_one_transaction_with_a_savepoint_that_rolls_back(desk: Path) -> None:
    write("a", b"A")
    with hooks.business_transaction(using=ALIAS):
        write("a", b"B")
        with pytest.raises(Interrupted), hooks.business_transaction(using=ALIAS):
            write("a", b"C")
            raise Interrupted
        assert tree(desk)[path_of("a").text] == b"B"
    assert tree(desk) == stored(a=b"B")
    assert agrees(desk)


@pytest.mark.spec("C5")
def test_a_folder_goes_with_all_below_it_and_comes_back(desk: Path) -> None:
    write("a", b"A")
    write("b", b"B")
    item = path_of("a").ids[:3]
    with pytest.raises(Interrupted):
        remove(type(path_of("a"))(item), then=fail)
    assert tree(desk) == stored(a=b"A", b=b"B")
    assert remove(type(path_of("a"))(item))
    assert tree(desk) == {}
    assert agrees(desk)
    assert not remove(path_of("a"))


@pytest.mark.spec("C5")
def test_what_is_stored_is_opened_and_what_is_not_is_said(desk: Path) -> None:
    write("a", b"A" * 100_000)
    with open_stored(path_of("a")) as file:
        assert (file.read(3), len(file.read())) == (b"AAA", 99_997)
    with pytest.raises(FileNotFoundError):
        open_stored(path_of("b"))
