"""Upload, replace and download through real HTTP, on real databases and a real tree (C5, C6, A2 to A5)."""

import pytest

from tests.claims.conftest import MakePerson, Web
from tests.claims.person import Person
from tests.commercial.make import states, usage, used_and_held

pytestmark = pytest.mark.spec("C5", "C6")


def test_what_is_uploaded_is_stored_byte_for_byte_and_counted_once(alice: Person, web: Web) -> None:
    place = alice.place()
    answer = alice.send(b"paper" * 100, to=place)
    assert answer.status_code == 201
    assert answer.json()["sizeBytes"] == 500
    assert answer.json()["name"] == "receipt.pdf"
    assert alice.content(f"{place}/{answer.json()['attachmentId']}") == b"paper" * 100
    assert list(web.files().values()) == [b"paper" * 100]
    assert web.incoming() == []
    assert (usage(), used_and_held(), states()) == (500, (500, 0), [("settled", 1, "completion")])


def test_a_replacement_leaves_one_file_and_counts_what_was_written(alice: Person, web: Web) -> None:
    place = alice.place()
    attachment = alice.upload(b"old" * 100, to=place)
    answer = alice.send(b"newer" * 100, to=attachment, method="put", name="corrected.pdf")
    assert (answer.status_code, answer.json()["name"]) == (200, "corrected.pdf")
    assert alice.content(attachment) == b"newer" * 100
    assert list(web.files().values()) == [b"newer" * 100]
    assert (usage(), used_and_held()) == (800, (800, 0))


@pytest.mark.parametrize("method", ["post", "put"])
def test_quota_that_is_used_up_is_429_and_every_old_byte_stands(make_person: MakePerson, web: Web, method: str) -> None:
    alice = make_person(limit=1000)
    place = alice.place()
    attachment = alice.upload(b"o" * 700, to=place)
    before = web.files()
    answer = alice.send(b"n" * 301, to=place if method == "post" else attachment, method=method)
    assert answer.status_code == 429
    assert answer.headers["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert told["type"] == "urn:backbone:problem:quota-exceeded"
    assert [told[name] for name in ("limit", "used", "held", "requested")] == [1000, 700, 0, 301]
    assert web.files() == before
    assert web.incoming() == []
    assert alice.content(attachment) == b"o" * 700
    assert (usage(), used_and_held()) == (700, (700, 0))
    assert alice.send(b"n" * 300, to=place).status_code == 201


def test_a_repeat_with_the_same_request_id_writes_the_file_and_counts_nothing(alice: Person, web: Web) -> None:
    place = alice.place()
    first = alice.send(b"paper" * 10, to=place, request_id="one")
    (path,) = web.files()
    (web.root / path).write_bytes(b"damaged on the disk")
    again = alice.send(b"paper" * 10, to=place, request_id="one")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["attachmentId"] == again.json()["attachmentId"]
    assert list(web.files().values()) == [b"paper" * 10]
    assert (usage(), used_and_held()) == (50, (50, 0))


@pytest.mark.trap("M9")
@pytest.mark.parametrize("other", [b"other bytes", b"paper!"], ids=["another-size", "the-same-size"])
def test_the_same_request_id_with_another_content_is_409(alice: Person, web: Web, other: bytes) -> None:
    place = alice.place()
    alice.upload(b"paper.", to=place, request_id="one")
    answer = alice.send(other, to=place, request_id="one")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:backbone:problem:conflict")
    assert list(web.files().values()) == [b"paper."]
    assert (usage(), used_and_held()) == (6, (6, 0))


def test_the_same_request_id_names_another_upload_in_another_item_or_of_another_person(
    alice: Person, make_person: MakePerson, web: Web
) -> None:
    bob = make_person(tenant=alice.tenant, name="bob")
    for person, content in ((alice, b"a" * 10), (alice, b"b" * 20), (bob, b"c" * 30)):
        assert person.send(content, to=person.place(), request_id="one").status_code == 201
    assert (usage(), len(web.files())) == (60, 3)


def test_without_a_request_id_a_repeat_is_known_by_session_item_and_content(alice: Person, web: Web) -> None:
    place = alice.place()
    first, again = alice.send(b"paper", to=place), alice.send(b"paper", to=place)
    assert first.json()["attachmentId"] == again.json()["attachmentId"]
    other_name = alice.send(b"paper", to=place, name="copy.pdf")
    assert other_name.json()["attachmentId"] != first.json()["attachmentId"]
    assert usage() == 5
    alice.upload(b"paper", to=alice.place())
    assert (usage(), len(web.files())) == (10, 3)


def test_another_session_of_the_same_person_counts_anew(alice: Person, make_person: MakePerson) -> None:
    place = alice.place()
    alice.upload(b"paper", to=place)
    make_person(tenant=alice.tenant).upload(b"paper", to=place)
    assert usage() == 10


@pytest.mark.spec("C8")
def test_without_a_plan_uploads_work_and_nothing_commercial_is_written(make_person: MakePerson, web: Web) -> None:
    alice = make_person(limit=None)
    attachment = alice.upload(b"paper", to=alice.place())
    assert alice.send(b"newer", to=attachment, method="put").status_code == 200
    assert alice.content(attachment) == b"newer"
    assert len(web.files()) == 1
    assert not states()


def test_what_was_deleted_may_be_uploaded_again_and_is_not_counted_again(alice: Person, web: Web) -> None:
    place = alice.place()
    attachment = alice.upload(b"paper", to=place, request_id="one")
    assert alice.call("delete", attachment).status_code == 204
    assert web.files() == {}
    assert alice.upload(b"paper", to=place, request_id="one") != attachment
    assert (usage(), len(web.files())) == (5, 1)
