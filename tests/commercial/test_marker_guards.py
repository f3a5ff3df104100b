"""What must never happen to markers is refused by the business database, to every login role."""

import uuid

import pytest

from billing.commercial import hooks
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.commercial.conftest import swept_now
from tests.commercial.make import AT, BUSINESS, operation, subscribe
from tests.commercial.notes import write_note

pytestmark = [pytest.mark.usefixtures("business")]

NEW = str(uuid.UUID(int=7))


@pytest.fixture(autouse=True)
def markers(business: None) -> None:
    """One marker of a commit, and one of a sweep's refusal."""
    contract = subscribe(limit=10, tenant="org:guarded")
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    swept_now()
    write_note(contract, "a", "text")


def marker(**columns: str) -> str:
    whole = {"subject_id": f"'{NEW}'", "generation": "1", "kind": "'reservation'", "verdict": "'refused'"}
    named = whole | columns
    return f"INSERT INTO commercial_markers ({', '.join(named)}) VALUES ({', '.join(named.values())})"


@pytest.mark.spec("C3")
@pytest.mark.parametrize("alias", ["attachments", "attachments.schema"])
@pytest.mark.parametrize(
    ("constraint", "statements"),
    [
        ("commercial_markers_pkey", [marker(), marker(verdict="'committed'")]),
        ("commercial_marker_kind_closed", [marker(kind="'file'")]),
        ("commercial_marker_verdict_closed", [marker(verdict="'maybe'")]),
        ("commercial_marker_generation", [marker(generation="0")]),
        ("commercial_marker_generation", [marker(kind="'work'", generation="2")]),
    ],
)
def test_the_business_database_refuses(alias: str, constraint: str, statements: list[str]) -> None:
    refused = refusal_of(alias, *statements)
    assert refused in {constraint, "commercial_marker_generation"}


@pytest.mark.trap("D30")
def test_a_marker_never_changes() -> None:
    ignore = "SET pgtrigger.ignore = 'all'"
    for statement in (
        "UPDATE commercial_markers SET verdict = 'refused'",
        "DELETE FROM commercial_markers",
        "TRUNCATE commercial_markers",
    ):
        assert refusal_of("attachments", ignore, statement) == NO_PRIVILEGE
        assert refusal_of("attachments.read", ignore, statement) == NO_PRIVILEGE
        assert refusal_of("attachments.schema", ignore, statement).startswith("commercial_marker_")
    assert refusal_of("attachments.read", marker()) == NO_PRIVILEGE
