"""Everything that the journal's constraints, triggers and grants refuse, tried through SQL."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from tests.files.papers import path_of

JOURNAL = "attachments.journal"
PATH = path_of("a").text
NO_PRIVILEGE = "42501"
INSERT = (
    "INSERT INTO staged_file_intents (intent_id, transaction_id, marker_id, action, path, replaces, size_bytes)"
    " VALUES (%(intent)s, %(transaction)s, %(marker)s, %(action)s, %(path)s, %(replaces)s, %(size)s)"
)
ROW: dict[str, Any] = {"action": "place", "path": PATH, "replaces": False, "size": 5}

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.spec("C5", "C9")]


def write(alias: str = JOURNAL, **changed: Any) -> uuid.UUID:
    """Insert one intent; its id."""
    intent = uuid.uuid4()
    row = {"intent": intent, "transaction": uuid.uuid4(), "marker": uuid.uuid4()} | ROW | changed
    with connections[alias].cursor() as cursor:
        cursor.execute(INSERT, row)
    return intent


def refused(statement: str, *, alias: str = JOURNAL, **values: Any) -> str:
    """Run what must be refused; the name of what refused it, or the SQLSTATE."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(statement, values)
    cause: Any = caught.value.__cause__
    return str(cause.diag.constraint_name or cause.sqlstate)


@pytest.mark.parametrize(
    ("changed", "constraint"),
    [
        pytest.param({"action": "copy"}, "staged_file_action_closed", id="unknown action"),
        pytest.param({"path": "../etc"}, "staged_file_path_of_ids", id="upwards"),
        pytest.param({"path": PATH[:36]}, "staged_file_path_of_ids", id="a whole tenant"),
        pytest.param({"path": f"{PATH}/{uuid.uuid4()}"}, "staged_file_path_of_ids", id="too deep"),
        pytest.param({"path": PATH.upper()}, "staged_file_path_of_ids", id="upper case"),
        pytest.param({"path": f"{PATH}\n"}, "staged_file_path_of_ids", id="a line more"),
        pytest.param({"size": None}, "staged_file_what_happens", id="placed without a length"),
        pytest.param({"size": -1}, "staged_file_what_happens", id="less than nothing"),
        pytest.param({"action": "remove", "replaces": True}, "staged_file_what_happens", id="removed with a length"),
        pytest.param({"action": "remove", "size": None}, "staged_file_what_happens", id="nothing removed"),
    ],
)
def test_an_intent_that_says_what_cannot_be_is_refused(changed: dict[str, Any], constraint: str) -> None:
    row = {name: uuid.uuid4() for name in ("intent", "transaction", "marker")} | ROW | changed
    assert refused(INSERT, **row) == constraint


def test_an_id_names_one_intent() -> None:
    intent = write()
    row = {"intent": intent, "transaction": uuid.uuid4(), "marker": uuid.uuid4()} | ROW | {"path": path_of("b").text}
    assert refused(INSERT, **row) == "staged_file_intents_intent_id_key"


@pytest.mark.trap("M10")
@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_path_and_what_is_above_and_below_it_has_one_open_transaction(length: int) -> None:
    mine = uuid.uuid4()
    write(path="/".join(PATH.split("/")[:length]), transaction=mine)
    other = {name: uuid.uuid4() for name in ("intent", "transaction", "marker")} | ROW
    assert refused(INSERT, **other) == "staged_file_one_at_a_time"
    write(transaction=mine)
    write(path=path_of("a", item="other", claim="other").text)


def test_what_could_not_be_ended_is_in_the_way_of_its_own_transaction_too() -> None:
    mine = uuid.uuid4()
    intent = write(transaction=mine)
    with connections[JOURNAL].cursor() as cursor:
        cursor.execute(
            "UPDATE staged_file_intents SET failures = 1, last_failure = 'OSError' WHERE intent_id = %s", [intent]
        )
    again = {"intent": uuid.uuid4(), "transaction": mine, "marker": uuid.uuid4()} | ROW
    assert refused(INSERT, **again) == "staged_file_one_at_a_time"


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("state = 'gone', ended_at = now(), ended_by = 'sweep'", "staged_file_end"),
        ("state = 'kept'", "staged_file_end"),
        ("state = 'kept', ended_at = now()", "staged_file_end"),
        ("state = 'kept', ended_at = now(), ended_by = 'somebody'", "staged_file_end"),
        ("ended_at = now()", "staged_file_end"),
        ("failures = 1", "staged_file_failures"),
        ("last_failure = 'OSError'", "staged_file_failures"),
        ("failures = -1", "staged_file_fixed"),
    ],
)
def test_an_intent_ends_in_one_of_two_ways_and_failures_are_named(change: str, constraint: str) -> None:
    write()
    assert refused(f"UPDATE staged_file_intents SET {change}") == constraint


def test_what_has_ended_never_changes() -> None:
    write()
    ended = "UPDATE staged_file_intents SET state = %(state)s, ended_at = now(), ended_by = 'sweep'"
    with connections[JOURNAL].cursor() as cursor:
        cursor.execute(ended, {"state": "undone"})
    for alias in (JOURNAL, "attachments.schema"):
        assert refused(ended, alias=alias, state="kept") == "staged_file_ended"
        reopened = "UPDATE staged_file_intents SET state = 'open', ended_at = NULL, ended_by = NULL"
        assert refused(reopened, alias=alias) == "staged_file_ended"


FIXED = {
    "sequence": "sequence + 1", "intent_id": "gen_random_uuid()", "transaction_id": "gen_random_uuid()",
    "marker_id": "gen_random_uuid()", "action": "'remove'", "path": f"'{path_of('b').text}'",
    "replaces": "NOT replaces", "size_bytes": "size_bytes + 1", "written_at": "written_at - interval '1 day'",
}  # fmt: skip


@pytest.mark.parametrize("column", FIXED)
def test_what_an_intent_says_is_fixed_for_every_role(column: str) -> None:
    write()
    statement = f"UPDATE staged_file_intents SET {column} = {FIXED[column]}"
    assert refused(statement) == NO_PRIVILEGE
    assert refused(statement, alias="attachments") == NO_PRIVILEGE
    assert refused(statement, alias="attachments.schema") in {"staged_file_fixed", "428C9"}


@pytest.mark.parametrize(
    ("statement", "guard"),
    [
        ("DELETE FROM staged_file_intents", "staged_file_delete"),
        ("TRUNCATE staged_file_intents", "staged_file_truncate"),
    ],
)
def test_the_journal_is_never_deleted(statement: str, guard: str) -> None:
    write()
    for alias in (JOURNAL, "attachments", "attachments.read"):
        assert refused(statement, alias=alias) == NO_PRIVILEGE
    assert refused(statement, alias="attachments.schema") == guard


def test_the_owners_login_writes_no_intent_and_the_journals_no_business_row() -> None:
    row = {name: uuid.uuid4() for name in ("intent", "transaction", "marker")} | ROW
    assert refused(INSERT, alias="attachments", **row) == NO_PRIVILEGE
    end = "UPDATE staged_file_intents SET state = 'kept', ended_at = now(), ended_by = 'sweep'"
    assert refused(end, alias="attachments") == NO_PRIVILEGE
    reachable = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        " AND has_any_column_privilege(oid, 'SELECT, INSERT, UPDATE')"
    )
    with connections[JOURNAL].cursor() as cursor:
        cursor.execute(reachable)
        assert {name for (name,) in cursor.fetchall()} == {"staged_file_intents", "commercial_markers"}


@pytest.fixture(autouse=True)
def nothing_open(database: None) -> Iterator[None]:
    """Each test begins with an empty journal."""
    yield
    connections[JOURNAL].close()
