"""Whose telemetry is this: each refusal by its reason, each database failure as what it is."""

import logging
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import DatabaseError, connections

from metering.clusters.authenticate import Authenticated, AuthenticationFailed, authenticate
from metering.clusters.clusters import Change, Rate, change_cluster
from metering.clusters.models import Mode, Sink
from metering.clusters.revoke import revoke
from metering.clusters.rotate import Rotated
from tests.clusters.conftest import ACTOR, database_time, header_of, let_in, outcome

pytestmark = [pytest.mark.spec("T2")]


def test_a_token_leads_to_its_cluster_its_mode_and_what_is_set_for_it(rotated: Callable[[], Rotated]) -> None:
    done = rotated()
    assert let_in(done) == Authenticated(7, done.token_id, Mode.GATEWAY, None)
    change = Change(sink=Sink.FANOUT, rate=Rate(per_second=10, burst=30))
    change_cluster(cluster_id=7, change=change, actor=ACTOR)
    assert let_in(done) == Authenticated(7, done.token_id, Mode.GATEWAY, "fanout", 10, 30)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, "missing_header"),
        (b"", "malformed_header"),
        (b"Bearer", "malformed_header"),
        (b"Bearer ", "malformed_header"),
        (b"Basic YTpi", "malformed_header"),
        (b"Bearer a b", "malformed_header"),
        (b"Bearer a,Bearer b", "malformed_header"),
        (b"Bearer \xc3\xa4", "malformed_header"),
        (b"Bearer a\x00", "malformed_header"),
        (b"Bearer a\n", "malformed_header"),
        (b"Bearer\ta", "malformed_header"),
        (b"Bearer " + b"a" * 513, "malformed_header"),
        (b"Bearer " + b"a" * 512, "token_not_found"),
        (b"Bearer unknown", "token_not_found"),
        (b"Bearer ' OR 1=1 --", "malformed_header"),
    ],
)
def test_a_header_that_opens_nothing_is_refused_by_its_reason(
    database: None, header: bytes | None, reason: str
) -> None:
    assert outcome(header, database_time()) == reason


def test_the_scheme_is_read_in_any_case_and_spaces_around_the_token_do_not_matter(
    rotated: Callable[[], Rotated],
) -> None:
    done = rotated()
    token, now = done.plaintext.text.encode(), database_time()
    for header in (b"bearer " + token, b"BEARER  " + token, b"Bearer " + token + b" "):
        assert outcome(header, now) == "accepted"
    assert outcome(b"Bearer " + token.swapcase(), now) == "token_not_found"
    assert outcome(b"Bearer " + token[:-1], now) == "token_not_found"


def test_the_hash_of_a_token_is_not_a_token(rotated: Callable[[], Rotated]) -> None:
    assert outcome(b"Bearer " + rotated().plaintext.sha256.encode(), database_time()) == "token_not_found"


@pytest.mark.trap("T10")
def test_a_revoked_token_is_refused_as_revoked_even_after_its_deadline(rotated: Callable[[], Rotated]) -> None:
    first = rotated()
    second = rotated()
    revoke(cluster_id=7, token_id=first.token_id, actor=ACTOR)
    for now in (database_time(), second.superseded[0].expires_at + timedelta(days=1)):
        assert outcome(header_of(first), now) == "token_revoked"
    assert outcome(header_of(second), database_time()) == "accepted"


@pytest.mark.trap("T11")
def test_a_refusal_and_the_log_hold_no_part_of_the_header(
    rotated: Callable[[], Rotated], caplog: pytest.LogCaptureFixture
) -> None:
    secret = rotated().plaintext.text
    caplog.set_level(logging.DEBUG)
    for header in (b"Bearer " + secret[:-1].encode(), b"Basic " + secret.encode(), secret.encode()):
        with pytest.raises(AuthenticationFailed) as failed:
            authenticate(header, database_time())
        shown = f"{failed.value!r} {failed.value} {failed.value.__cause__} {failed.value.__context__} {caplog.text}"
        assert secret[5:20] not in shown


def test_a_database_that_is_away_is_its_own_error_and_the_next_call_connects_again(
    rotated: Callable[[], Rotated],
) -> None:
    done = rotated()
    let_in(done)
    raw = connections["metering.read"].connection
    assert raw is not None
    raw.pgconn.finish()
    with pytest.raises(DatabaseError):
        let_in(done, done.issued_at)
    assert let_in(done).token_id == done.token_id
