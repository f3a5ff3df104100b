"""A body beyond the bound is refused while it comes, and nothing of it is kept (F1)."""

import http.client
import json
from collections.abc import Iterator

import pytest

from tests.connectors.facts import events
from tests.connectors.provider import Event, Provider

BOUND = 65536
pytestmark = [pytest.mark.trap("F1", "T14"), pytest.mark.spec("C4")]


def chunks(total: int, *, size: int = 8192) -> Iterator[bytes]:
    """So many bytes, of which nothing tells the number beforehand."""
    for start in range(0, total, size):
        yield b"x" * min(size, total - start)


def test_the_bound_itself_is_accepted_and_one_byte_more_is_not(provider: Provider) -> None:
    assert provider.send(Event(body=b"x" * BOUND)).status == 200
    answer = provider.send(Event(body=b"x" * (BOUND + 1)))
    assert (answer.status, answer.problem) == (413, "too-large")
    assert events() == 1


def test_a_body_without_a_length_is_bounded_while_it_comes(provider: Provider) -> None:
    event = Event(body=b"x" * BOUND)
    headers = provider.headers(event)
    chunked = {**headers, "transfer-encoding": "chunked"}
    assert provider.web.request("POST", provider.path, chunks(BOUND), chunked).status == 200
    answer = provider.web.request("POST", provider.path, chunks(BOUND + 1), chunked)
    assert (answer.status, answer.problem) == (413, "too-large")
    assert events() == 1


def test_a_length_that_is_announced_is_believed_before_anything_comes(provider: Provider) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", provider.web.port, timeout=60)
    try:
        connection.putrequest("POST", provider.path)
        connection.putheader("content-length", str(10**12))
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 413
        assert json.loads(answer.read())["type"].endswith(":too-large")
    finally:
        connection.close()
    assert provider.web.is_live()


def test_other_addresses_are_not_bounded_by_it(provider: Provider) -> None:
    answer = provider.web.request("POST", "/api/v1/nothing", b"x" * (BOUND + 1))
    assert answer.status == 404
