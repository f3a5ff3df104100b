"""docs/settings.md names every environment variable that the code reads, with its default and limits, and no other."""

import re
from fnmatch import fnmatchcase

from tests.ground.conftest import ROOT
from tests.ground.variables import Variable, read_by_the_code


def documented() -> dict[str, tuple[str, str, str]]:
    """Unit, default and limits by name; `<OWNER>` and the like read as `*`."""
    rows = re.findall(
        r"^\| `([A-Z][A-Z0-9_<>]*)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|",
        (ROOT / "docs" / "settings.md").read_text(),
        re.MULTILINE,
    )
    return {re.sub(r"<[A-Z]+>", "*", name): (unit, default, limits) for name, unit, default, limits in rows}


def same(one: str, other: str) -> bool:
    """Whether two names, each perhaps with `*` for a part that varies, can mean one variable."""
    return fnmatchcase(one, other) or fnmatchcase(other, one)


def test_every_variable_that_is_read_is_documented_and_no_other() -> None:
    read, pages = {variable.name for variable in read_by_the_code()}, documented()
    assert [name for name in sorted(read) if not any(same(name, page) for page in pages)] == []
    assert [page for page in sorted(pages) if not any(same(name, page) for name in read)] == []


def test_the_documented_defaults_and_limits_are_those_of_the_code() -> None:
    pages = documented()

    def wrong(variable: Variable) -> bool:
        _, default, limits = pages.get(variable.name, ("", variable.default or "", variable.limits or ""))
        return (variable.default is not None and variable.default != default.strip("`")) or (
            variable.limits is not None and variable.limits != limits
        )

    assert [variable for variable in sorted(read_by_the_code(), key=str) if wrong(variable)] == []
