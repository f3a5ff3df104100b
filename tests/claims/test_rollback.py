"""What rolls back: files as they were, quota given back, and the same may be done again (A2, A4)."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections

from tests.claims.conftest import Web
from tests.claims.person import Person
from tests.commercial.make import states, usage, used_and_held

pytestmark = pytest.mark.spec("C5", "C3", "C2")

REFUSE = """
CREATE FUNCTION test_refuse_commit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION USING MESSAGE = ''a test refuses this commit''; END'
"""


@contextmanager
def refused_commits(table: str) -> Iterator[None]:
    """Every transaction that changes this table fails at its COMMIT."""
    with connections["attachments.schema"].cursor() as cursor:
        cursor.execute(REFUSE)
        cursor.execute("GRANT EXECUTE ON FUNCTION test_refuse_commit() TO attachments_owner")
        cursor.execute(
            f"CREATE CONSTRAINT TRIGGER test_refuse_commit AFTER INSERT OR UPDATE OR DELETE ON {table}"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION test_refuse_commit()"
        )
    try:
        yield
    finally:
        with connections["attachments.schema"].cursor() as cursor:
            cursor.execute("DROP FUNCTION test_refuse_commit() CASCADE")
        connections["attachments.schema"].close()


def test_an_upload_whose_commit_fails_leaves_no_file_and_no_usage_and_may_be_repeated(alice: Person, web: Web) -> None:
    place = alice.place()
    with refused_commits("claim_attachments"):
        answer = alice.send(b"paper", to=place, request_id="one")
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:backbone:problem:internal")
    assert "a test refuses" not in answer.text
    assert (web.files(), web.incoming()) == ({}, [])
    assert (usage(), used_and_held(), states()) == (0, (0, 0), [("released", 1, "compensation")])
    assert alice.send(b"paper", to=place, request_id="one").status_code == 201
    assert (usage(), states()) == (5, [("settled", 2, "completion")])


def test_a_replacement_whose_commit_fails_restores_the_old_file(alice: Person, web: Web) -> None:
    attachment = alice.upload(b"old", to=alice.place())
    before = web.files()
    with refused_commits("claim_attachments"):
        assert alice.send(b"newer", to=attachment, method="put").status_code == 500
    assert web.files() == before
    assert (alice.content(attachment), usage(), used_and_held()) == (b"old", 3, (3, 0))


@pytest.mark.parametrize(
    ("what", "table"),
    [("attachment", "claim_attachments"), ("item", "claim_items"), ("claim", "claims")],
    ids=["attachment", "item", "claim"],
)
def test_a_deletion_is_undone_with_its_rollback_and_final_with_its_commit(
    alice: Person, web: Web, what: str, table: str
) -> None:
    place = alice.place()
    attachment = alice.upload(b"first", to=place)
    kept = alice.upload(b"second", to=place) if what == "attachment" else alice.upload(b"second", to=alice.place())
    item = place.removesuffix("/attachments")
    path = {"attachment": attachment, "item": item, "claim": item.partition("/items")[0]}[what]
    before = web.files()
    with refused_commits(table):
        assert alice.call("delete", path).status_code == 500
    assert web.files() == before
    assert alice.content(attachment) == b"first"
    assert alice.call("delete", path).status_code == 204
    assert list(web.files().values()) == [b"second"]
    assert alice.content(kept) == b"second"
    assert alice.call("get", attachment).status_code == 404
    assert (usage(), used_and_held()) == (11, (11, 0))
