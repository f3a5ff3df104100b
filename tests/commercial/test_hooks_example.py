"""The page about the hooks is their public contract: its example runs, and its tables name what there is."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from billing.commercial import hooks
from tests.commercial.make import AT, Contract, rows, states, subscribe, usage, used_and_held
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "commercial-hooks.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def reports(database: None) -> Iterator[None]:
    """The table of the page's business."""
    with connections["attachments.schema"].cursor() as cursor:
        cursor.execute("CREATE TABLE reports (name text PRIMARY KEY, path text NOT NULL)")
        cursor.execute("GRANT SELECT, INSERT ON reports TO attachments_owner, attachments_read")
    yield
    with connections["attachments.schema"].cursor() as cursor:
        cursor.execute("DROP TABLE reports")


@pytest.fixture
def write_report(reports: None, tmp_path: Path) -> Callable[..., None]:
    """The function of the page, as it stands there."""
    names: dict[str, Any] = {}
    exec(compile(EXAMPLE, "docs/commercial-hooks.md", "exec"), names)

    def write(contract: Contract, request_id: str, name: str) -> None:
        names["write_report"](
            tenant=contract.tenant_id, request_id=request_id, name=name, text="words", folder=tmp_path, now=AT
        )

    return write


@pytest.mark.spec("C3", "C6", "C8")
def test_the_example_of_the_page_runs(write_report: Callable[..., None], tmp_path: Path) -> None:
    contract = subscribe(limit=2, tool="reports", dimension="report.write")
    write_report(contract, "1", "a")
    with pytest.raises(Exception, match="unique"):
        write_report(contract, "2", "a")
    write_report(contract, "3", "b")
    with pytest.raises(hooks.QuotaExceeded):
        write_report(contract, "4", "c")
    assert (usage(), used_and_held(), [state for state, _, _ in states()]) == (
        2,
        (2, 0),
        ["settled", "released", "settled"],
    )
    write_report(Contract("org:free", "", ""), "1", "d")
    stored = {path for (path,) in rows("SELECT path FROM reports", alias="attachments.read")}
    assert {str(path) for path in tmp_path.iterdir()} == stored
    assert (len(stored), len(states())) == (3, 3)


def test_the_page_names_every_error_and_every_part_of_the_module() -> None:
    missing = [name for name in hooks.__all__ if f"`{name}" not in PAGE and f".{name}" not in PAGE]
    shown = {
        "BusinessTransaction", "Decision", "Ended", "MarkerKey", "Permit", "PermitState", "Standing", "AmbiguousMeter",
        "NoMarkers", "UnknownCost", "WrongHashKey", "WrongQuantityBasis", "WrongTransaction", "CommercialError",
    }  # fmt: skip
    assert set(missing) <= shown
    assert set(hooks.__all__) == {name for name in vars(hooks) if not name.startswith("_")} - {"__all__"}


def test_everything_raised_is_one_family() -> None:
    errors = [value for value in vars(hooks).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(errors) > 10
    for error in errors:
        assert issubclass(error, hooks.CommercialError)
        text = error.__doc__ or ""
        assert error in {hooks.CommercialError} or "Permanent" in text or "Transient" in text, error
