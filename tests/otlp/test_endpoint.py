"""`POST /v1/logs` and what is beside it: statuses, bodies and headers exactly as fixed, and never a redirect."""

import gzip
import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from metering.clusters.models import Mode, OtlpToken
from tests.otlp.make import ABSENT, body, llm, padded, request, sample
from tests.otlp.server import Server
from tests.otlp.storing import rows, stored

MIB = 2**20
EIGHT = 8 * MIB
EVENTS = "SELECT event_id, cluster_id, source_mode FROM llm_billing_events ORDER BY event_id"


@pytest.mark.spec("T1")
@pytest.mark.parametrize("encoding", [None, "identity", "gzip", "x-gzip", "GZIP"])
@pytest.mark.parametrize("chunked", [False, True])
def test_events_are_stored_in_every_accepted_form(server: Server, encoding: str | None, chunked: bool) -> None:
    plain = body([llm("e"), sample("s")])
    packed = gzip.compress(plain) if encoding and "gzip" in encoding.lower() else plain
    sent: Any = iter([packed[:10], packed[10:]]) if chunked else packed
    answer = server.post(sent, chunked=chunked, content_encoding=encoding)
    assert (answer.status, answer.rejected) == (200, (0, "")), answer
    assert answer.body == b""
    assert answer.headers["content-type"] == "application/x-protobuf"
    assert rows(EVENTS) == [("e", "7", "gateway")]
    assert stored("resource_utilization_events") == 1


@pytest.mark.spec("T1")
@pytest.mark.trap("T1")
def test_a_chunked_body_without_any_length_is_stored(server: Server) -> None:
    plain = body([llm("e")])
    with server.socket() as connection:
        connection.sendall(server.head(Transfer_Encoding="chunked"))
        for part in (plain[:1], plain[1:50], plain[50:]):
            connection.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        connection.sendall(b"0\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert rows(EVENTS) == [("e", "7", "gateway")]


@pytest.mark.trap("T1")
def test_an_empty_body_that_was_announced_is_never_acknowledged(server: Server) -> None:
    assert server.post(iter([]), chunked=True, transfer_encoding="chunked").status == 400
    assert server.post(iter([]), chunked=True, transfer_encoding="chunked", content_encoding="gzip").status == 400
    assert server.post(b"", content_encoding="gzip").status == 400
    with server.socket() as connection:
        connection.sendall(server.head())
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
    assert server.post(b"", content_length="0").status == 200
    assert server.counted("otlp_refused_bodies_total", reason="empty") >= 2


@pytest.mark.spec("T1")
@pytest.mark.trap("T2")
@pytest.mark.parametrize(
    ("size", "status"), [(3 * MIB, 200), (EIGHT - 1, 200), (EIGHT, 200), (EIGHT + 1, 413), (9 * MIB, 413)]
)
@pytest.mark.parametrize("chunked", [False, True])
def test_only_more_than_eight_mebibytes_on_the_wire_are_too_much(
    server: Server, size: int, status: int, chunked: bool
) -> None:
    whole = padded(body([llm("e")]), size)
    parts = (whole[at : at + 100_000] for at in range(0, size, 100_000))
    answer = server.post(parts if chunked else whole, chunked=chunked)
    assert answer.status == status
    assert stored() == (status == 200)
    if status == 413:
        assert answer.error == (3, "A body has at most 8388608 bytes.")


@pytest.mark.trap("T2")
def test_a_full_body_of_real_records_is_stored(server: Server) -> None:
    events = [llm(f"e-{number}") for number in range(10_000)]
    whole = padded(body(events), EIGHT)
    assert server.post(whole).status == 200
    assert stored() == len(events)


@pytest.mark.trap("T3")
def test_a_small_body_that_inflates_beyond_the_bound_is_too_large(server: Server) -> None:
    bomb = gzip.compress(bytes(100 * MIB))
    assert len(bomb) < 200_000
    answer = server.post(bomb, content_encoding="gzip")
    assert (answer.status, answer.error[0]) == (413, 3)
    assert server.post(padded(body([llm()]), 30 * MIB)[:0], content_encoding="gzip", content_length="0").status == 400
    assert server.post_gzip(padded(body([llm("e")]), 32 * MIB)).status == 200
    assert server.post_gzip(padded(body([llm("e")]), 32 * MIB + 1)).status == 413


@pytest.mark.trap("T3")
def test_damaged_gzip_is_malformed_and_several_members_are_one_body(server: Server) -> None:
    first, second = body([llm("a")]), body([llm("b")])
    packed = gzip.compress(first + second)
    for broken in (packed[:-1], packed[: len(packed) // 2], packed[:-5] + b"\0" + packed[-4:], packed + b"x", b"plain"):
        answer = server.post(broken, content_encoding="gzip")
        assert (answer.status, answer.error[0]) == (400, 3)
    assert stored() == 0
    assert server.post(gzip.compress(first) + gzip.compress(second), content_encoding="gzip").status == 200
    assert stored() == 2


@pytest.mark.spec("T1")
def test_a_body_that_is_no_request_is_malformed_and_stores_nothing_of_it(server: Server) -> None:
    good = body([llm("e")])
    before = server.counted("otlp_refused_bodies_total", reason="malformed")
    for broken in (b"hello", good + b"\x0a\x05ab", good[:-3], b"\x00", json.dumps({}).encode()):
        answer = server.post(broken)
        assert (answer.status, answer.error[0]) == (400, 3), broken
    assert stored() == 0
    assert server.counted("otlp_refused_bodies_total", reason="malformed") == before + 5


@pytest.mark.spec("T1")
@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": None}, {"content_type": "text/plain"}, {"content_type": "application/octet-stream"},
        {"content_encoding": "br"}, {"content_encoding": "zstd"}, {"content_encoding": "gzip, gzip"},
        {"content_encoding": "deflate"},
    ],
)  # fmt: skip
def test_another_form_is_not_supported(server: Server, headers: dict[str, Any]) -> None:
    answer = server.post(body([llm()]), **headers)
    assert (answer.status, answer.error[0]) == (415, 3)
    assert stored() == 0


@pytest.mark.spec("T1")
def test_a_content_type_may_have_parameters_and_any_case(server: Server) -> None:
    assert server.post(body([llm()]), content_type="Application/X-Protobuf; charset=x").status == 200


def as_json(made: Any) -> bytes:
    return json.dumps(MessageToDict(made)).encode()


@pytest.mark.spec("T1")
def test_json_is_answered_in_json_where_it_is_accepted(server: Server) -> None:
    answer = server.post(as_json(request([llm("e"), llm("x", at=None)])), content_type="application/json")
    assert answer.status == 200
    partial = answer.json["partialSuccess"]
    assert partial == {"rejectedLogRecords": "1", "errorMessage": "dropped for occurred_at: 1"}
    assert server.post_gzip(as_json(request([llm("f")])), content_type="application/json").json == {}
    broken = server.post(b"{", content_type="application/json")
    assert (broken.status, broken.json["code"]) == (400, 3)
    refused = server.post(b"{}", content_type="application/json", token="wrong")
    assert (refused.status, refused.json["code"]) == (401, 16)
    assert [row[0] for row in rows(EVENTS)] == ["e", "f"]


@pytest.mark.spec("T7")
@pytest.mark.trap("T5")
def test_dropped_records_are_told_in_a_partial_success_and_counted_by_bare_field_name(server: Server) -> None:
    before = server.counted("otlp_dropped_total", reason="occurred_at")
    events = [llm("a"), llm(at=None), llm(at=None), llm(provider=ABSENT), sample("b"), llm(manager_key_id="")]
    answer = server.post(body(events))
    assert answer.status == 200
    assert answer.rejected == (4, "dropped for occurred_at: 2, manager_key_id: 1, provider: 1")
    assert stored() + stored("resource_utilization_events") + 4 == len(events)
    assert server.counted("otlp_dropped_total", reason="occurred_at") == before + 2
    assert server.post(body([llm(at=None)])).rejected == (1, "dropped for occurred_at: 1")


@pytest.mark.spec("T4")
def test_the_cluster_is_the_tokens_whatever_the_sender_says(server: Server) -> None:
    claims = [llm("a", cluster_id="999"), llm("b", cluster_id=5), llm("c")]
    assert server.post(body(claims, resource={"cluster_id": "31337"})).status == 200
    assert rows(EVENTS) == [("a", "7", "gateway"), ("b", "7", "gateway"), ("c", "7", "gateway")]


@pytest.mark.spec("T8")
def test_the_mode_of_the_token_decides_what_is_required_and_is_kept(server: Server, make_token: Any) -> None:
    own = make_token(8, mode=Mode.PER_CLUSTER)
    assert server.post(body([llm("a", manager_key_id=ABSENT)])).rejected == (1, "dropped for manager_key_id: 1")
    assert server.post(body([llm("b", manager_key_id=ABSENT, organization_id="o")]), token=own).rejected == (0, "")
    assert rows(EVENTS) == [("b", "8", "per_cluster")]


@pytest.mark.spec("T2")
@pytest.mark.trap("T10", "T11")
@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, "missing_header"), ("", "malformed_header"), ("Bearer", "malformed_header"),
        ("Bearer ", "malformed_header"), ("Basic dG9rZW4=", "malformed_header"), ("secret-part", "malformed_header"),
        ("Bearer a b", "malformed_header"), ("Bearer secret-part-of-a-token", "token_not_found"),
        ("Bearer " + "secret" * 500, "malformed_header"),
    ],
)  # fmt: skip
def test_a_wrong_token_is_told_nothing_and_no_part_of_it_is_kept(
    server: Server, header: str | None, reason: str
) -> None:
    before = server.counted("otlp_auth_failed_total", reason=reason)
    answer = server.post(body([llm()]), authorization=header)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.error == (16, "The bearer token is not accepted. Use the present PRIMARY token of the cluster.")
    assert server.counted("otlp_auth_failed_total", reason=reason) == before + 1
    assert "secret" not in server.parent.said().replace("OTLP_SECRET", "")
    assert stored() == 0


@pytest.mark.spec("T2")
@pytest.mark.trap("T10")
def test_a_revoked_token_is_refused_by_every_process_at_once(server: Server, make_token: Any) -> None:
    from metering.clusters.revoke import revoke
    from tests.otlp.conftest import ACTOR

    token = make_token()
    assert {server.post(body([llm()]), token=token).status for _ in range(8)} == {200}
    newest = OtlpToken.objects.filter(cluster_id=7, state="primary").get()
    revoke(cluster_id=7, token_id=newest.token_id, actor=ACTOR)
    assert {server.post(body([llm()]), token=token).status for _ in range(8)} == {401}
    assert {server.post(body([llm()])).status for _ in range(4)} == {200}


@pytest.mark.trap("T12")
@pytest.mark.parametrize("path", ["/v1/logs/", "/v1/log", "/", "//v1/logs", "/V1/LOGS", "/v1/logs/x", "/admin/", "/v1"])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_other_paths_are_not_there_and_nothing_redirects(server: Server, path: str, method: str) -> None:
    answer = server.post(body([llm()]), path=path, method=method)
    assert answer.status == 404
    assert "location" not in answer.headers
    assert stored() == 0


@pytest.mark.trap("T12")
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"])
def test_only_post_is_allowed(server: Server, method: str) -> None:
    answer = server.post(body([llm()]), method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert stored() == 0


@pytest.mark.spec("T1")
@pytest.mark.parametrize("path", ["/v1/metrics", "/v1/traces"])
@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
def test_metrics_and_traces_are_forbidden(server: Server, path: str, method: str) -> None:
    answer = server.post(body([llm()]), path=path, method=method)
    assert (answer.status, answer.json["code"]) == (403, 40301)


def test_health_and_metrics_are_there_for_whoever_runs_it(server: Server) -> None:
    assert server.get("/health/live").json == {"live": True}
    assert server.get("/health/ready").json == {"ready": True, "parts": {"metering": "ready", "telemetry": "ready"}}
    assert server.get("/metrics").status == 200
    assert server.post(b"", path="/metrics").status == 405


@pytest.mark.spec("T11")
@pytest.mark.parametrize("header", ["x_forwarded_for", "forwarded", "x_real_ip", "via"])
def test_metrics_are_not_there_through_a_proxy(server: Server, header: str) -> None:
    assert server.get("/metrics", **{header: "127.0.0.1"}).status == 404


def test_a_connection_serves_many_requests(server: Server) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for number in range(5):
        headers = {"Content-Type": "application/x-protobuf", "Authorization": f"Bearer {server.token}"}
        connection.request("POST", "/v1/logs", body([llm(f"e-{number}")]), headers)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
    connection.close()
    assert stored() == 5
