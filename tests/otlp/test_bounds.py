"""Bad senders over bare connections: endless, slow and lying ones; nothing beyond the bounds is kept anywhere (T14)."""

import gzip
import http.client
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from metering.otlp.body import MAX_BODY_BYTES
from metering.otlp.protocol import MAX_HEAD_BYTES
from tests.ground.waiting import until
from tests.otlp.make import body, llm, padded
from tests.otlp.server import Server, until_closed
from tests.otlp.storing import stored

MIB = 2**20


def status_of(answer: bytes) -> int:
    """The status of a raw answer, 0 for none."""
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0


@pytest.mark.trap("T14")
@pytest.mark.parametrize("token", ["wrong", None])
def test_an_endless_body_with_a_wrong_token_is_refused_before_it_is_read(server: Server, token: str | None) -> None:
    head = server.head(token=token or "", Transfer_Encoding="chunked")
    with server.socket() as connection:
        connection.sendall(head + b"10\r\n" + bytes(16) + b"\r\n")
        assert status_of(connection.recv(4096)) == 401
        sent = endless(connection)
    assert sent < 64 * MIB


@pytest.mark.trap("T14")
def test_an_endless_body_with_a_good_token_ends_at_the_bound(server: Server) -> None:
    with server.socket() as connection:
        connection.sendall(server.head(Transfer_Encoding="chunked"))
        sent = endless(connection)
        assert status_of(until_closed(connection)) in {413, 0}
    assert MAX_BODY_BYTES < sent < 64 * MIB
    assert stored() == 0
    assert server.post(body([llm()])).status == 200


def endless(connection: socket.socket) -> int:
    """Send chunks until the server closes the connection; how many bytes it took."""
    chunk = b"10000\r\n" + bytes(65536) + b"\r\n"
    sent = 0
    with suppress(OSError):
        while sent < 200 * MIB:
            connection.sendall(chunk)
            sent += len(chunk)
    return sent


@pytest.mark.trap("T14", "T2")
def test_a_body_that_announces_too_much_is_refused_without_reading_it(server: Server) -> None:
    with server.socket() as connection:
        connection.sendall(server.head(Content_Length=str(10**12)))
        assert status_of(connection.recv(4096)) == 413


@pytest.mark.trap("T14")
def test_a_client_that_asks_before_sending_is_told_no_instead_of_continue(server: Server) -> None:
    for token, expected in (("wrong", 401), (None, 100)):
        with server.socket() as connection:
            connection.sendall(server.head(token=token, Content_Length="100", Expect="100-continue"))
            assert status_of(connection.recv(4096)) == expected


@pytest.mark.trap("T14")
def test_a_slow_body_is_given_up_with_an_answer_at_which_clients_keep_their_data(server: Server) -> None:
    before = server.counted("otlp_unavailable_total", reason="slow")
    whole = body([llm("e")])
    with server.socket() as connection:
        connection.sendall(server.head(Content_Length=str(len(whole))) + whole[:-1])
        answer = until_closed(connection)
    assert status_of(answer) == 503
    assert b"retry-after: " in answer
    assert stored() == 0
    assert server.counted("otlp_unavailable_total", reason="slow") == before + 1


@pytest.mark.trap("T14")
@pytest.mark.parametrize("start", [b"", b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nX-Slow: "], ids=["none", "some"])
def test_a_slow_head_is_given_up(server: Server, start: bytes) -> None:
    with server.socket() as connection:
        connection.sendall(start)
        assert until_closed(connection) == b""


@pytest.mark.trap("T14")
def test_a_second_request_on_a_connection_has_no_more_patience(server: Server) -> None:
    whole = body([llm()])
    with server.socket() as connection:
        connection.sendall(server.head(Content_Length=str(len(whole))) + whole)
        assert status_of(connection.recv(4096)) == 200
        connection.sendall(b"POST /v1/logs HTTP/1.1\r\n")
        assert until_closed(connection) == b""


@pytest.mark.trap("T14")
@pytest.mark.parametrize("header", [b"X-Long: " + b"x" * 10 * MIB, b"X-Many: 1\r\n" * MIB], ids=["long", "many"])
def test_an_endless_head_is_cut_off(server: Server, header: bytes) -> None:
    assert len(header) > MAX_HEAD_BYTES
    with server.socket() as connection:
        with suppress(OSError):
            connection.sendall(b"POST /v1/logs HTTP/1.1\r\nHost: x\r\n" + header)
        assert status_of(until_closed(connection)) in {0, 400}
    assert server.get("/health/live").status == 200


@pytest.mark.trap("T14")
def test_endless_trailers_are_cut_off(server: Server) -> None:
    with server.socket() as connection:
        connection.sendall(server.head(Transfer_Encoding="chunked") + b"0\r\n")
        with suppress(OSError):
            for _ in range(200):
                connection.sendall(b"X-T: " + b"y" * MIB + b"\r\n")
        until_closed(connection)
    assert server.get("/health/live").status == 200
    assert stored() == 0


@pytest.mark.trap("T1")
def test_a_client_that_leaves_in_the_middle_stores_nothing(server: Server) -> None:
    whole = body([llm("e")])
    for said in (len(whole), len(whole) * 2):
        with server.socket() as connection:
            connection.sendall(server.head(Content_Length=str(said)) + whole[:-1])
    with server.socket() as connection:
        connection.sendall(server.head(Transfer_Encoding="chunked") + f"{len(whole):x}\r\n".encode() + whole + b"\r\n")
    assert server.post(whole).status == 200
    assert stored() == 1


@pytest.mark.trap("T14", "T3")
def test_memory_stays_bounded_while_full_bodies_and_bombs_arrive_in_parallel(server: Server) -> None:
    real = padded(body([llm() for _ in range(15_000)]), MAX_BODY_BYTES)
    packed = gzip.compress(padded(body([llm() for _ in range(40_000)]), 32 * MIB), 1)
    bomb = gzip.compress(bytes(200 * MIB))
    statuses: list[int] = []

    def send(sent: bytes, encoding: str | None) -> None:
        statuses.append(server.post(sent, content_encoding=encoding).status)

    works = [(real, None)] * 6 + [(packed, "gzip")] * 3 + [(bomb, "gzip")] * 3
    threads = [threading.Thread(target=send, args=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 413, 503}
    assert statuses.count(200) >= 2
    peaks = {pid: peak_kilobytes(pid) for pid in server.processes()}
    assert max(peaks.values()) < 300 * 1024, peaks


def peak_kilobytes(pid: int) -> int:
    """The most memory that a process has held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.trap("T14")
def test_many_idle_connections_leave_room_for_a_working_one(server: Server) -> None:
    idle = [http.client.HTTPConnection("127.0.0.1", server.port) for _ in range(100)]
    for connection in idle:
        connection.connect()
    try:
        assert server.post(body([llm()])).status == 200
    finally:
        for connection in idle:
            connection.close()
    until(lambda: sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in server.processes()) < 200)
