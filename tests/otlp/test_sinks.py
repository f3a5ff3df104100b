"""Where accepted events end up: the log, the store, the store and the archive; and what happens when one fails."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from metering.otlp.archive import Archive, Damaged, events
from tests.otlp.make import NOON, body, llm, nanos, sample
from tests.otlp.server import Server
from tests.otlp.storing import rows, stored
from tests.verify.tamper import administrator


def archived(server_archive: Path) -> list[dict[str, Any]]:
    """The archived events of cluster 9 and 10, in order."""
    return [event for event in events(server_archive) if event["cluster_id"] in {"9", "10"}]


@pytest.fixture
def archive(server: Server, tmp_path: Path) -> Path:
    """Where the shared receiver archives."""
    (environment,) = {Path(f"/proc/{pid}/environ").read_bytes() for pid in server.processes()}
    named = dict(item.split(b"=", 1) for item in environment.split(b"\0") if b"=" in item)
    place = Path(named[b"OTLP_ARCHIVE_DIR"].decode())
    place.mkdir(exist_ok=True)
    for file in place.iterdir():
        file.unlink()
    return place


@pytest.mark.spec("T10", "T12")
def test_fanout_stores_first_and_archives_every_accepted_event_duplicates_included(
    server: Server, archive: Path, make_token: Any
) -> None:
    token = make_token(9, sink="fanout")
    sent = body([llm("a"), llm("x", at=None), sample("s"), llm("b", prompt_tokens=5)])
    assert server.post(sent, token=token).rejected[0] == 1
    assert server.post(body([llm("b", prompt_tokens=6), llm("a")]), token=token).status == 200
    assert Counter((event["event_type"], event["event_id"]) for event in archived(archive)) == {
        ("llm_billing", "a"): 2, ("llm_billing", "b"): 2, ("resource_utilization", "s"): 1,
    }  # fmt: skip
    assert (stored(), stored("resource_utilization_events")) == (2, 1)


@pytest.mark.spec("T4", "T10")
def test_a_line_says_what_is_stored_and_every_attribute_as_it_came_but_for_the_cluster(
    server: Server, archive: Path, make_token: Any
) -> None:
    token = make_token(9, sink="fanout")
    odd: dict[str, Any] = {
        "list": [1, -2, {"deep": b"\xff"}],
        "nan": float("nan"),
        "nul": "a\x00b",
        "none": None,
        "yes": True,
    }
    record = llm("a", at=nanos(NOON) + 999, cluster_id="31337", organization_id="", **odd)
    server.post(body([record], resource={"cluster_id": 5, "service.name": "s"}), token=token)
    (event,) = archived(archive)
    assert (event["log"], event["event_type"], event["event_id"]) == ("otlp_billing_event", "llm_billing", "a")
    assert (event["occurred_at"], event["cluster_id"]) == ("2026-03-04T12:00:00.123456Z", "9")
    assert (event["source_mode"], event["organization_id"], event["prompt_tokens"]) == ("gateway", None, 1200)
    attributes = {pair["key"]: pair["value"] for pair in event["attributes"]}
    assert attributes["cluster_id"] == {"stringValue": "9"}
    assert attributes["prompt_tokens"] == {"intValue": "1200"}
    assert attributes["organization_id"] == {"stringValue": ""}
    assert attributes["nan"] == {"doubleValue": "NaN"}
    assert attributes["nul"] == {"stringValue": "a\x00b"}
    assert attributes["none"] == {}
    assert attributes["yes"] == {"boolValue": True}
    deep = {"kvlistValue": {"values": [{"key": "deep", "value": {"bytesValue": "/w=="}}]}}
    assert attributes["list"] == {"arrayValue": {"values": [{"intValue": "1"}, {"intValue": "-2"}, deep]}}
    assert event["resource_attributes"] == [
        {"key": "service.name", "value": {"stringValue": "s"}}, {"key": "cluster_id", "value": {"stringValue": "9"}},
    ]  # fmt: skip


@pytest.mark.spec("T4")
def test_a_cluster_that_nobody_named_is_named_in_resource_and_record(
    server: Server, archive: Path, make_token: Any
) -> None:
    server.post(body([llm("a")]), token=make_token(9, sink="fanout"))
    (event,) = archived(archive)
    named = {"key": "cluster_id", "value": {"stringValue": "9"}}
    assert event["resource_attributes"] == [named]
    assert event["attributes"].count(named) == 1


@pytest.mark.spec("T10")
def test_an_archive_that_fails_is_503_and_the_resend_archives_what_is_stored_by_then(
    server: Server, archive: Path, make_token: Any
) -> None:
    token = make_token(9, sink="fanout")
    away = archive.with_name("away")
    before = server.counted("otlp_unavailable_total", reason="archive")
    archive.rename(away)
    archive.write_text("in the way")
    try:
        answer = server.post(body([llm("a")]), token=token)
        assert answer.status == 503
        assert 1 <= int(answer.headers["retry-after"]) <= 5
    finally:
        archive.unlink()
        away.rename(archive)
    assert stored() == 1
    assert archived(archive) == []
    assert server.post(body([llm("a")]), token=token).status == 200
    assert [event["event_id"] for event in archived(archive)] == ["a"]
    assert stored() == 1
    assert server.counted("otlp_unavailable_total", reason="archive") >= before + 1


@pytest.mark.spec("T10")
def test_the_log_gets_one_line_per_accepted_event_and_nothing_is_kept(
    server: Server, archive: Path, make_token: Any
) -> None:
    token = make_token(10, sink="logging")
    assert server.post(body([llm("logged-1"), sample("logged-2"), llm(at=None)]), token=token).rejected[0] == 1
    lines = [json.loads(line) for line in server.parent.said().splitlines() if "logged-" in line]
    assert [(line["event"], line["event_id"], line["cluster_id"]) for line in lines] == [
        ("otlp_billing_event", "logged-1", "10"), ("otlp_billing_event", "logged-2", "10"),
    ]  # fmt: skip
    assert stored() == stored("resource_utilization_events") == 0
    assert archived(archive) == []
    assert rows("SELECT * FROM telemetry_tallies") == rows("SELECT * FROM telemetry_drops") == []


@pytest.mark.spec("T12")
def test_a_cluster_moves_along_the_ramp_without_a_restart(server: Server, archive: Path, make_token: Any) -> None:
    for sink, kept in (("logging", (0, 0)), ("fanout", (1, 1)), ("timescale", (2, 1)), (None, (3, 1))):
        token = make_token(9, sink=sink)
        assert server.post(body([llm()]), token=token).status == 200
        assert (stored(), len(archived(archive))) == kept, sink


@pytest.fixture
def store_away(server: Server) -> Iterator[Callable[[bool], None]]:
    """Close the telemetry database to the receiver, sessions included, and open it again."""

    def switch(away: bool) -> None:
        with administrator("telemetry") as connection:
            connection.execute(f"ALTER ROLE telemetry_owner {'NOLOGIN' if away else 'LOGIN'}")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'telemetry_owner'"
            )

    yield switch
    switch(False)


@pytest.mark.spec("T10")
@pytest.mark.trap("T4", "D13")
def test_a_store_that_is_away_is_503_nothing_is_archived_and_the_resend_stores_all(
    server: Server, archive: Path, make_token: Any, store_away: Callable[[bool], None]
) -> None:
    token = make_token(9, sink="fanout")
    before = server.counted("otlp_unavailable_total", reason="store")
    store_away(True)
    for _ in range(4):
        answer = server.post(body([llm("a"), llm(at=None)]), token=token)
        assert answer.status == 503
        assert answer.error[0] == 14
        assert 1 <= int(answer.headers["retry-after"]) <= 5
    assert server.post(body([llm("b")]), token=make_token(10, sink="logging")).status == 200
    store_away(False)
    assert archived(archive) == []
    assert {server.post(body([llm("a"), llm(at=None)]), token=token).rejected[0] for _ in range(4)} == {1}
    connections["telemetry"].close()
    assert stored() == 1
    assert server.counted("otlp_unavailable_total", reason="store") == before + 4


@pytest.mark.trap("D13")
def test_sessions_that_the_server_ended_cost_no_request(server: Server, store_away: Callable[[bool], None]) -> None:
    assert {server.post(body([llm()])).status for _ in range(6)} == {200}
    store_away(False)
    assert {server.post(body([llm()])).status for _ in range(6)} == {200}
    connections["telemetry"].close()
    assert stored() == 12


@pytest.mark.spec("T10")
def test_a_token_store_that_is_away_is_503_not_401(server: Server) -> None:
    def close(away: bool) -> None:
        with administrator("metering") as connection:
            connection.execute(f"ALTER ROLE metering_read {'NOLOGIN' if away else 'LOGIN'}")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'metering_read'")

    assert server.post(body([llm()])).status == 200
    close(True)
    try:
        assert {server.post(body([llm()])).status for _ in range(4)} == {503}
        assert {server.post(body([llm()]), token="wrong").status for _ in range(4)} == {503}
        assert server.post(body([llm()]), authorization=None).status == 401
    finally:
        close(False)
    assert {server.post(body([llm()])).status for _ in range(4)} == {200}


def test_lines_of_several_threads_stay_whole_and_files_rotate(tmp_path: Path) -> None:
    archive = Archive(directory=tmp_path, rotate_bytes=65_536, rotate_seconds=3600)
    line = json.dumps({"event_id": "x", "filler": "y" * 2000}).encode() + b"\n"

    def append() -> None:
        for _ in range(20):
            archive.append([line] * 5)

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    archive.close()
    assert len(list(events(tmp_path))) == 400
    sizes = [path.stat().st_size for path in tmp_path.glob("*.jsonl")]
    assert len(sizes) > 5
    assert max(sizes) < 65_536 + 5 * len(line)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*.jsonl")} == {0o600}


def test_files_rotate_by_age(tmp_path: Path) -> None:
    archive = Archive(directory=tmp_path, rotate_bytes=10**9, rotate_seconds=0)
    archive.append([b"{}\n"])
    archive.append([b"{}\n"])
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    archive.append([])
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_what_a_crash_cut_off_is_left_out_and_anything_else_is_damage(tmp_path: Path) -> None:
    (tmp_path / "otlp-1.jsonl").write_bytes(b'{"event_id":"a"}\n{"event_id":"b')
    (tmp_path / "otlp-2.jsonl").write_bytes(b'{"event_id":"c"}\n')
    (tmp_path / "other.txt").write_bytes(b"no")
    assert [event["event_id"] for event in events(tmp_path)] == ["a", "c"]
    (tmp_path / "otlp-3.jsonl").write_bytes(b'{"event_id":\n{}\n')
    with pytest.raises(Damaged, match=r"otlp-3\.jsonl, line 1"):
        list(events(tmp_path))


def test_after_a_write_that_failed_a_new_file_begins(tmp_path: Path) -> None:
    archive = Archive(directory=tmp_path, rotate_bytes=10**9, rotate_seconds=3600)
    archive.append([b'{"n":1}\n'])
    file = archive._file
    assert file is not None
    os.dup2(os.open(archive._path, os.O_RDONLY), file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        archive.append([b'{"n":2}\n'])
    archive.append([b'{"n":2}\n'])
    assert [event["n"] for event in events(tmp_path)] == [1, 2]
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_nothing_is_written_into_a_file_that_was_moved_away_or_removed(tmp_path: Path) -> None:
    archive = Archive(directory=tmp_path, rotate_bytes=10**9, rotate_seconds=3600)
    archive.append([b'{"n":1}\n'])
    archive._path.rename(tmp_path / "moved")
    archive.append([b'{"n":2}\n'])
    archive._path.unlink()
    archive.append([b'{"n":3}\n'])
    assert [event["n"] for event in events(tmp_path)] == [3]
    assert (tmp_path / "moved").read_bytes() == b'{"n":1}\n'
