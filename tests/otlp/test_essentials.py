"""What cannot be read as a whole costs nobody anything: only stored attributes are looked into (T4, T5)."""

import gzip
import json
import threading
from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp.decode import Piece, Summary, decode
from metering.otlp.describe import Archivist
from metering.otlp.essentials import LARGEST_VALUE, WHOLE_BYTES
from metering.otlp.fields import Kind
from tests.otlp.make import NOON, body, llm, request, rules, sample, wrapped
from tests.otlp.server import Server, until_closed
from tests.otlp.storing import stored
from tests.otlp.test_bounds import peak_kilobytes

EMPTY_ATTRIBUTE = b"\x32\x00"


def read(encoded: bytes) -> tuple[Piece, Summary, list[dict[str, Any]]]:
    """The one piece of a request, and its archive lines."""
    summary = Summary()
    archivist = Archivist(cluster_id="1", mode="gateway", received_at=NOON)
    (piece,) = decode(encoded, rules=rules(), summary=summary, describe=archivist.line)
    return piece, summary, [json.loads(line) for line in piece.lines]


def nested(levels: int) -> bytes:
    """A value in a list in a list and so on, encoded."""
    made = wrapped(1, b"x")
    for _ in range(levels):
        made = wrapped(5, wrapped(1, made))
    return made


def with_record(encoded: bytes, *beside: LogRecord) -> bytes:
    """A request of one encoded record and good ones."""
    records = b"".join(wrapped(2, one.SerializeToString()) for one in beside)
    return wrapped(1, wrapped(2, wrapped(2, encoded) + records))


ODD = {
    "text that is no UTF-8": wrapped(1, b"mark\xff\xfe"),
    "a hundred levels": nested(100),
    "size": wrapped(1, b"y" * WHOLE_BYTES),
    "no value at all": b"\x0a",
}


@pytest.mark.parametrize("odd", ODD)
def test_an_attribute_that_is_not_stored_may_hold_anything(odd: str) -> None:
    note = wrapped(6, wrapped(1, b"note") + wrapped(2, ODD[odd]))
    good = [llm("a"), llm("b"), sample("c")]
    encoded = with_record(llm("odd").SerializeToString() + note, *good)
    piece, summary, lines = read(encoded)
    assert (len(piece.rows[Kind.LLM_BILLING]), len(piece.rows[Kind.RESOURCE_UTILIZATION])) == (3, 1)
    assert summary.rejected == 0
    assert piece.rows[Kind.LLM_BILLING][0][1:] == piece.rows[Kind.LLM_BILLING][1][1:]
    assert [line.get("attributes_cut", False) for line in lines] == [True, False, False, False]
    assert {pair["key"] for pair in lines[0]["attributes"]} >= {"event_id", "cluster_id", "prompt_tokens"}
    assert "note" not in {pair["key"] for pair in lines[0]["attributes"]}


def test_a_resource_may_hold_anything_beside_what_is_stored() -> None:
    stated = {"tenant_name": "of the resource", "note": "0marker0"}
    record = llm("a")
    del record.attributes[[pair.key for pair in record.attributes].index("tenant_name")]
    encoded = request([record], resource=stated).SerializeToString().replace(b"0marker0", b"0mark\xff\xfe0")
    piece, summary, (line,) = read(encoded)
    assert "of the resource" in piece.rows[Kind.LLM_BILLING][0]
    assert (summary.rejected, line["attributes_cut"]) == (0, True)


@pytest.mark.trap("T7")
@pytest.mark.parametrize("odd", ["text", "size"])
def test_a_stored_attribute_that_no_column_takes_drops_its_record_alone(odd: str) -> None:
    name = {"text": "0marker0", "size": "y" * (LARGEST_VALUE + WHOLE_BYTES)}[odd]
    encoded = body([llm("a"), llm("b", tenant_name=name), llm("c")]).replace(b"0marker0", b"0mark\xff\xfe0")
    piece, summary, _ = read(encoded)
    assert len(piece.rows[Kind.LLM_BILLING]) == 2
    assert {(kind, reason.value): count for (kind, reason), count in summary.dropped.items()} == {
        (Kind.LLM_BILLING, "tenant_name"): 1
    }


def test_a_stored_attribute_that_is_given_often_is_given_twice() -> None:
    often = llm("a").SerializeToString() + wrapped(6, wrapped(1, b"tenant_name")) * 50_000
    piece, summary, _ = read(with_record(often, llm("b")))
    assert len(piece.rows[Kind.LLM_BILLING]) == 1
    assert [reason.value for _, reason in summary.dropped] == ["tenant_name"]


@pytest.mark.trap("T3")
def test_millions_of_attributes_in_a_few_kilobytes_take_no_memory_and_no_other_sender_s_turn(
    server: Server, make_token: Any
) -> None:
    many = EMPTY_ATTRIBUTE * (2 * 2**20 - 512)
    attack = gzip.compress(with_record(llm("odd").SerializeToString() + many, llm("beside")))
    empty_records = gzip.compress(wrapped(1, wrapped(2, b"\x12\x00" * 90_000)))
    innocent = make_token(12)
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda sent=sent: statuses.append(server.post(sent, content_encoding="gzip").status))
        for sent in [attack, empty_records] * 3
    ]
    for thread in threads:
        thread.start()
    assert {server.post(body([llm()]), token=innocent).status for _ in range(5)} == {200}
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 503}
    peaks = {pid: peak_kilobytes(pid) for pid in server.processes()}
    assert max(peaks.values()) < 300 * 1024, peaks


@pytest.mark.parametrize("offer", ["h2c", "websocket"])
def test_an_offer_to_change_the_protocol_is_passed_over(server: Server, offer: str) -> None:
    sent = body([llm("offered")])
    headers: dict[str, Any] = {"Upgrade": offer, "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAEAAEAA"}
    answer = server.post(sent, **headers)
    assert (answer.status, stored()) == (200, 1)
    assert server.post(iter([sent]), chunked=True, **headers).status == 200


def test_an_offer_that_comes_in_pieces_ends_in_a_closed_connection_and_no_refusal(server: Server) -> None:
    head = server.head(Connection="Upgrade", Upgrade="h2c", Content_Length="5")
    middle = head.index(b"Upgrade: h2c") + 4
    with server.socket() as connection:
        connection.sendall(head[:middle])
        server.get("/health/live")
        connection.sendall(head[middle:] + b"12345")
        assert until_closed(connection) == b""
    assert server.post(body([llm()])).status == 200
