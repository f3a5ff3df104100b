"""The table of what is proven reads the marks as pytest does, and refuses an id that nobody knows."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.coverage_table import IDS, UnknownId, coverage, known_ids, page, undone

SOURCE = """
import pytest
pytestmark = [pytest.mark.spec("O6"), pytest.mark.slow]

@pytest.mark.trap("D3", "D4")
def test_one(): ...

@pytest.mark.spec("O7")
class TestMany:
    @pytest.mark.spec("O6")
    def test_two(self): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("O9"))])
def test_three(x): ...

def helper(): ...
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / IDS, tmp_path / IDS)
    (tmp_path / "tests" / "test_it.py").write_text(SOURCE)
    return tmp_path


def test_marks_of_tests_classes_modules_and_parameters_are_counted(tree: Path) -> None:
    counts = {identity: sum(tests.values()) for (_, identity), tests in coverage(tree).items()}
    assert counts == {"O6": 3, "O7": 1, "O9": 1, "D3": 1, "D4": 1}
    assert "| O6 |" in page(tree)
    assert "[it](../tests/test_it.py) 3" in page(tree)
    assert "spec O5: " in " ".join(undone(tree))
    assert not any(line.startswith(("spec O6:", "trap D3:")) for line in undone(tree))


@pytest.mark.parametrize("mark", ['spec("O99")', 'trap("O6")', 'spec("D3")', 'spec("o6")'])
def test_an_unknown_id_is_refused(tree: Path, mark: str) -> None:
    (tree / "tests" / "test_it.py").write_text(f"import pytest\n@pytest.mark.{mark}\ndef test_it(): ...\n")
    with pytest.raises(UnknownId, match="does not hold"):
        coverage(tree)


def test_every_mark_of_this_project_is_known() -> None:
    assert coverage(ROOT)


def test_the_inventory_is_whole() -> None:
    known = known_ids(ROOT)
    expected = {
        "spec": [("O", 34), ("C", 10), ("T", 13)],
        "trap": [("D", 30), ("T", 14), ("M", 10), ("F", 7)],
    }
    for kind, families in expected.items():
        assert list(known[kind]) == [f"{letter}{n}" for letter, last in families for n in range(1, last + 1)]
    assert all(entry.keys() <= {"title", "due", "open"} for entries in known.values() for entry in entries.values())
