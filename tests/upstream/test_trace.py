import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from billing.ledger.recompute import recompute
from outbox.contracts.contract import instant
from tests.conftest import ROOT
from upstream.admission.models import Run
from upstream.admission.trace import BadRow, NotATrace, TraceRow, read_trace

EXCERPT = ROOT / "deploy" / "demo" / "trace_excerpt.csv"
HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
RunDjango = Callable[..., subprocess.CompletedProcess[str]]


def rows(tmp_path: Path, body: bytes) -> list[TraceRow | BadRow]:
    file = tmp_path / "trace.csv"
    file.write_bytes(HEADER + body)
    return list(read_trace(file))


def test_the_excerpt_is_read_whole_and_its_last_row_has_no_newline() -> None:
    assert not EXCERPT.read_bytes().endswith(b"\n")
    found = list(read_trace(EXCERPT))
    assert len(found) == 500
    assert all(isinstance(row, TraceRow) for row in found)
    assert found[0] == TraceRow(2, "2023-11-16T18:17:03.979960Z", 4808, 10)


def test_a_time_is_cut_to_microseconds(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, b"2023-11-16 18:17:03.9999999,1,2")
    assert isinstance(row, TraceRow)
    assert row.requested_at == "2023-11-16T18:17:03.999999Z"
    assert instant(row.requested_at).microsecond == 999999


@pytest.mark.parametrize(
    "line",
    [
        b"", b"2023-11-16 18:17:03.9999999,1", b"2023-11-16 18:17:03.9999999,1,2,3", b"2023-11-16 18:17:03.9,-1,2",
        b"2023-11-16 18:17:03.9,1.5,2", b"2023-11-16 18:17:03.9, 1,2", b"2023-11-16 18:17:03,1,2",
        b"2023-02-30 18:17:03.9,1,2", b"2023-11-16 24:17:03.9,1,2", b"2023-11-16T18:17:03.9,1,2",
        b"2023-11-16 18:17:03.9,1e3,2", b'"2023-11-16 18:17:03.9",1,2', b"2023-11-16 18:17:03.9,9999999999999999,2",
        b"\xff\xfe", b"2023-11-16 18:17:03.9,1,\x00", "2023-11-16 18:17:03.9,١,2".encode(), b"x" * 5000,
    ],
)  # fmt: skip
def test_a_malformed_row_is_named_by_its_line_and_its_neighbours_are_read(tmp_path: Path, line: bytes) -> None:
    good = b"2023-11-16 18:17:03.9799600,4808,10"
    first, bad, last = rows(tmp_path, good + b"\n" + line + b"\n" + good + b"\r\n")
    assert isinstance(first, TraceRow)
    assert isinstance(last, TraceRow)
    assert isinstance(bad, BadRow)
    assert (first.line, bad.line, last.line) == (2, 3, 4)


def test_another_file_is_refused_with_advice(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_bytes(b"a,b,c\n1,2,3\n")
    with pytest.raises(NotATrace, match="TIMESTAMP"):
        list(read_trace(file))


def replayed(run_django: RunDjango, *arguments: str) -> dict[str, object]:
    result = run_django("replay_trace", "--json", *arguments)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.usefixtures("database")
def test_a_replay_admits_every_row_and_a_second_one_changes_nothing(run_django: RunDjango) -> None:
    first = replayed(run_django, "--limit", "120", "--batch", "50")
    assert [first[key] for key in ("rows", "runs", "newRuns", "events", "deliveries")] == [120, 120, 120, 240, 240]
    assert (first["skipped"], first["notAdmitted"]) == ([], {})
    second = replayed(run_django, "--limit", "120", "--batch", "7")
    assert [second[key] for key in ("rows", "runs", "newRuns", "events", "deliveries")] == [120, 120, 0, 240, 240]
    assert second["examples"] == first["examples"]
    assert recompute().differences == ()


@pytest.mark.usefixtures("database")
def test_a_replay_reports_what_it_skips(run_django: RunDjango, tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_bytes(HEADER + b"2023-11-16 18:17:03.9799600,4808,10\nnonsense\n2023-11-16 18:17:04.9799600,8,1")
    answer = replayed(run_django, "--trace", str(file))
    assert (answer["rows"], answer["runs"]) == (2, 2)
    assert answer["skipped"] == [{"line": 3, "reason": "not of the form TIMESTAMP,ContextTokens,GeneratedTokens"}]


@pytest.mark.usefixtures("database")
def test_a_replay_that_was_killed_is_run_again(run_django: RunDjango) -> None:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "replay_trace", "--batch", "5"], cwd=ROOT, env=dict(os.environ),
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    while Run.objects.count() < 50 and process.poll() is None:
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert Run.objects.count() < 500
    answer = replayed(run_django)
    assert [answer[key] for key in ("rows", "runs", "events", "deliveries")] == [500, 500, 1000, 1000]
    assert recompute().differences == ()
