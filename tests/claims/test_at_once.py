"""Several callers at once, and a server that dies in the middle (C5, C9, M10)."""

import threading
from collections.abc import Callable

import pytest
import requests
from django.db import connections

from attachments.files.sweep import sweep as sweep_files
from tests.claims.conftest import MakePerson, Web
from tests.claims.person import Person
from tests.commercial.conftest import swept_now
from tests.commercial.make import states, usage, used_and_held
from tests.ground.waiting import until

pytestmark = pytest.mark.spec("C5")
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


class Call(threading.Thread):
    """One request in a thread of its own."""

    def __init__(self, call: Callable[[], requests.Response]) -> None:
        super().__init__()
        self._call = call
        self.answer: requests.Response | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = self._call()
        except requests.RequestException as error:
            self.error = error

    def status(self) -> int:
        self.join()
        assert self.answer is not None, self.error
        return self.answer.status_code


def somebody_waits() -> bool:
    """Whether a session of this database waits for a lock."""
    with connections["attachments.schema"].cursor() as cursor:
        cursor.execute(WAITING)
        return bool(cursor.fetchone()[0])


def both(
    web: Web, step: str, first: Callable[[], requests.Response], second: Callable[[], requests.Response]
) -> list[int]:
    """Their statuses, where the second comes while the first is at work at this step, and waits for it."""
    web.at(step, "pause")
    calls = [Call(first)]
    web.await_step()
    calls.append(Call(second))
    until(somebody_waits)
    web.go_on()
    return [call.status() for call in calls]


@pytest.mark.trap("M10")
def test_of_two_deletions_of_one_attachment_one_is_done_and_the_other_finds_nothing(alice: Person, web: Web) -> None:
    attachment = alice.upload(b"paper", to=alice.place())

    def delete() -> requests.Response:
        return alice.call("delete", attachment)

    assert both(web, "claims.rows_deleted", delete, delete) == [204, 404]
    assert (web.files(), usage(), used_and_held()) == ({}, 5, (5, 0))


@pytest.mark.trap("M9")
@pytest.mark.parametrize("other", [b"paper", b"other"], ids=["the-same-content", "another-content"])
def test_of_two_uploads_with_one_request_id_one_is_counted(alice: Person, web: Web, other: bytes) -> None:
    place = alice.place()
    statuses = both(
        web,
        "claims.staged",
        lambda: alice.send(b"paper", to=place, request_id="one"),
        lambda: alice.send(other, to=place, request_id="one"),
    )
    assert statuses == [201, 200 if other == b"paper" else 409]
    assert list(web.files().values()) == [b"paper"]
    assert (usage(), used_and_held(), states()) == (5, (5, 0), [("settled", 1, "completion")])


def test_a_submission_waits_for_an_upload_and_a_later_upload_is_refused(alice: Person, web: Web) -> None:
    place = alice.place()
    submit = f"{place.partition('/items')[0]}/submit"
    statuses = both(web, "claims.staged", lambda: alice.send(b"paper", to=place), lambda: alice.call("post", submit))
    assert statuses == [201, 200]
    assert alice.send(b"other", to=place).status_code == 400
    assert list(web.files().values()) == [b"paper"]


def test_an_upload_that_meets_a_submission_gives_its_quota_back(alice: Person, web: Web) -> None:
    place = alice.place()
    web.at("claims.permitted", "pause")
    upload = Call(lambda: alice.send(b"paper", to=place))
    web.await_step()
    assert alice.call("post", f"{place.partition('/items')[0]}/submit").status_code == 200
    web.go_on()
    assert upload.status() == 400
    assert (web.files(), web.incoming(), usage(), used_and_held()) == ({}, [], 0, (0, 0))


@pytest.mark.trap("M7")
def test_parallel_uploads_never_take_more_than_the_limit(make_person: MakePerson, web: Web) -> None:
    alice = make_person(limit=50)
    places = [alice.place() for _ in range(4)]
    calls = [Call(lambda at=at: alice.send(f"{at:010}".encode(), to=places[at % 4])) for at in range(12)]  # type: ignore[misc]  # bound now
    statuses = sorted(call.status() for call in calls)
    assert statuses == [201] * 5 + [429] * 7
    assert (len(web.files()), usage(), used_and_held()) == (5, 50, (50, 0))


@pytest.mark.spec("C9")
@pytest.mark.parametrize("step", ["claims.staged", "commercial.committed"])
def test_a_replacement_during_which_the_server_is_killed_is_whole_or_was_not(
    alice: Person, web: Web, step: str
) -> None:
    attachment = alice.upload(b"old", to=alice.place())
    web.at(step, "kill")
    killed = Call(lambda: alice.send(b"newer", to=attachment, method="put", request_id="one"))
    killed.join()
    assert killed.error is not None
    until(lambda: web.process.poll() is not None)
    web.revive()
    until(lambda: swept_now().live == 0)
    sweep_files()
    committed = step == "commercial.committed"
    assert alice.content(attachment) == (b"newer" if committed else b"old")
    assert (len(web.files()), web.incoming(), used_and_held()) == (1, [], (8 if committed else 3, 0))
    assert alice.send(b"newer", to=attachment, method="put", request_id="one").status_code == 200
    assert (alice.content(attachment), usage(), len(web.files())) == (b"newer", 8, 1)
