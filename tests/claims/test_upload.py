"""Upload, replace and download through real HTTP, on real databases and a real tree (C5, C6, A2 to A5)."""

import pytest

from tests.claims.conftest import Web
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
