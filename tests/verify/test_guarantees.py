"""The page of guarantees names tests that exist."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "guarantees.md"
LINK = re.compile(r"\[(test_\w+)\]\(([^)]+)\)")
PROMISED, _, NOT_PROMISED = PAGE.read_text().partition("## What is not guaranteed")


@pytest.mark.parametrize(("name", "place"), LINK.findall(PROMISED))
def test_every_guarantee_is_linked_to_a_test_that_exists(name: str, place: str) -> None:
    file = (PAGE.parent / place).resolve()
    assert file.is_file(), f"{place} does not exist"
    assert re.search(rf"^def {name}\(", file.read_text(), re.MULTILINE), f"{place} has no test {name}"


def test_every_promise_has_a_test_and_what_is_not_promised_is_said() -> None:
    promises = PROMISED.split("\n- ")[1:]
    assert promises
    assert [promise for promise in promises if not LINK.search(promise)] == []
    assert NOT_PROMISED.count("\n- **") >= 5
