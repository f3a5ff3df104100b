"""Diagrams in the documentation say what the transition tables say."""

import pytest

from config.diagrams import ROOT, pages, with_diagrams


@pytest.mark.spec("O4")
@pytest.mark.parametrize("page", pages())
def test_the_state_diagrams_of_a_page_are_current(page: str) -> None:
    assert (ROOT / page).read_text() == with_diagrams(page), "run `make fix`"
