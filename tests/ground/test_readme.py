"""The README keeps its word: every link leads somewhere, every proof is a test, every command exists."""

import re

import pytest

from tests.ground.conftest import ROOT

README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_every_guarantee_names_a_test_that_exists() -> None:
    proofs = re.findall(r"\[(\w+)\]\((tests/\S+\.py)\)", README)
    assert len(proofs) > 10
    for words, path in proofs:
        assert re.search(rf"^def test_\w*{words}", (ROOT / path).read_text(), re.MULTILINE), (words, path)


def test_every_make_target_it_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"(?:`|^    )make ([a-z]+)", README, re.MULTILINE)
    assert {"demo", "test", "up", "check"} <= set(named)
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_management_command_it_names_exists() -> None:
    for command in re.findall(r"manage\.py (\w+)", README):
        assert list(ROOT.glob(f"*/**/management/commands/{command}.py")), command
