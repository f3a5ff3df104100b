"""`manage.py reconcile_telemetry`: the archive of the fanout sink holds what is stored, and little beside it."""

import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.clusters.models import Sink
from metering.otlp import reconcile as room
from metering.otlp import sinks
from metering.otlp.archive import Damaged, events
from metering.otlp.decode import Summary, decode
from metering.otlp.fields import Kind
from metering.otlp.reconcile import Compared, NoLongerKept, reconcile
from metering.otlp.sinks import ArchiveFailed, Origin
from outbox import steps
from tests.otlp.make import NOON, body, llm, rules, sample

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.spec("T12")]
MICROSECOND, HOUR = timedelta(microseconds=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """The archive of this test."""
    settings.OTLP_ARCHIVE_DIR = tmp_path / "archive"
    settings.OTLP_ARCHIVE_DIR.mkdir()
    sinks.archive.cache_clear()
    yield settings.OTLP_ARCHIVE_DIR
    sinks.archive().close()
    sinks.archive.cache_clear()


def send(*records: LogRecord, cluster: str = "7", sink: Sink = Sink.FANOUT) -> None:
    """What the receiver does with a request of this cluster."""
    encoded, summary = body(records), Summary()
    origin = Origin(cluster_id=cluster, mode="gateway", received_at=datetime.now(UTC))
    sinks.put(
        lambda describe: decode(encoded, rules=rules(), summary=summary, describe=describe),
        sink=sink,
        origin=origin,
        summary=summary,
    )


def compared(
    archive: Path, *, begin: datetime = NOON - HOUR, end: datetime = NOON + HOUR, cluster: str = "7"
) -> dict[Kind, Compared]:
    """Both kinds in a span around noon."""
    found = reconcile(cluster_id=cluster, begin=begin, end=end, archives=[archive], shown=3)
    return {one.kind: one for one in found}


def test_everything_stored_by_fanout_is_archived_and_repeats_count_once(archive: Path) -> None:
    first, second = llm("a"), llm("b")
    send(first, second, sample("s"))
    send(first)
    send(first, llm("a", prompt_tokens=1))
    found = compared(archive)
    counts = {kind: (one.stored, one.archived, one.agrees) for kind, one in found.items()}
    assert counts == {Kind.LLM_BILLING: (2, 2, True), Kind.RESOURCE_UTILIZATION: (1, 1, True)}


def test_what_is_stored_and_not_archived_is_named(archive: Path) -> None:
    send(llm("a"))
    send(*[llm(f"b{number}") for number in range(5)], sink=Sink.TIMESCALE)
    one = compared(archive)[Kind.LLM_BILLING]
    assert (one.stored, one.archived, one.lacking_count, one.exceeding_count) == (6, 1, 5, 0)
    assert one.lacking == tuple((f"b{number}", "2026-03-04T12:00:00.123456Z") for number in range(3))


def test_an_archive_that_fails_is_made_up_for_when_the_client_comes_again(archive: Path) -> None:
    event = llm("a")
    archive.rename(archive.with_name("away"))
    with pytest.raises(ArchiveFailed):
        send(event)
    archive.mkdir()
    assert not compared(archive)[Kind.LLM_BILLING].agrees
    send(event)
    assert compared(archive)[Kind.LLM_BILLING].agrees


def test_what_is_archived_and_nowhere_stored_is_named(archive: Path) -> None:
    send(llm("a"), llm("b"))
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("ALTER TABLE llm_billing_events DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM llm_billing_events WHERE event_id = 'b'")
        cursor.execute("ALTER TABLE llm_billing_events ENABLE TRIGGER USER")
    one = compared(archive)[Kind.LLM_BILLING]
    assert (one.exceeding_count, one.exceeding) == (1, (("b", "2026-03-04T12:00:00.123456Z"),))


def test_an_event_whose_key_is_another_clusters_is_a_conflict_and_no_difference(archive: Path) -> None:
    send(llm("a"), cluster="8")
    send(llm("a"), llm("b"), cluster="7")
    one = compared(archive)[Kind.LLM_BILLING]
    assert (one.stored, one.archived, one.conflicts, one.agrees) == (1, 2, 1, True)
    other = compared(archive, cluster="8")[Kind.LLM_BILLING]
    assert (other.stored, other.archived, other.conflicts, other.agrees) == (1, 1, 0, True)


def test_an_event_that_is_stored_while_the_archive_is_read_is_no_difference(archive: Path) -> None:
    send(llm("a"))

    def late(path: Path) -> Iterator[dict[str, Any]]:
        send(llm("b"))
        return events(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "events", late)
        one = compared(archive)[Kind.LLM_BILLING]
    assert (one.stored, one.archived, one.agrees) == (1, 2, True)


@pytest.mark.trap("M5")
def test_the_span_is_half_open_to_the_microsecond(archive: Path) -> None:
    send(llm("before", at=NOON - MICROSECOND), llm("first", at=NOON), llm("last", at=NOON + HOUR - MICROSECOND),
         llm("after", at=NOON + HOUR))  # fmt: skip
    one = compared(archive, begin=NOON, end=NOON + HOUR)[Kind.LLM_BILLING]
    assert (one.stored, one.archived, one.agrees) == (2, 2, True)


def test_more_keys_than_fit_into_one_batch_are_all_compared(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BATCH", 3)
    send(*[llm(f"a{number}") for number in range(10)])
    send(*[llm(f"b{number}") for number in range(7)], sink=Sink.TIMESCALE)
    one = compared(archive)[Kind.LLM_BILLING]
    assert (one.stored, one.archived, one.lacking_count, len(one.lacking)) == (17, 10, 7, 3)


def test_a_span_whose_events_are_no_longer_kept_is_refused(archive: Path) -> None:
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute("INSERT INTO telemetry_retention VALUES ('llm_billing', %s)", [NOON])
    with pytest.raises(NoLongerKept, match="2026-03-04T12:00:00"):
        compared(archive)
    assert compared(archive, begin=NOON)


def test_foreign_lines_in_an_archive_are_refused_by_name(archive: Path) -> None:
    (archive / "otlp-other.jsonl").write_text('{"some": "thing"}\n')
    with pytest.raises(Damaged, match="archive holds lines"):
        compared(archive)


def test_the_command_counts_names_and_exits_with_1_on_a_difference(
    archive: Path, run_django: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    send(llm("a"), sample("s"))
    where = ("--cluster", "7", "--from", "2026-03-04T00:00:00Z", "--to", "2026-03-05T02:00:00+02:00")
    said = run_django("reconcile_telemetry", *where, "--archive", str(archive))
    assert (said.returncode, said.stdout.splitlines()[-1]) == (0, "store and archive agree")
    send(llm("b"), sink=Sink.TIMESCALE)
    said = run_django("reconcile_telemetry", *where, env={"OTLP_ARCHIVE_DIR": str(archive)})
    assert said.returncode == 1
    assert "  not archived: 'b' at 2026-03-04T12:00:00.123456Z" in said.stdout.splitlines()
    document = json.loads(run_django("reconcile_telemetry", *where, "--archive", str(archive), "--json").stdout)
    assert document["ok"] is False
    assert document["kinds"][0] == {
        "kind": "llm_billing", "stored": 2, "archived": 1, "conflicts": 0, "lacking": 1, "exceeding": 0,
        "lackingKeys": [["b", "2026-03-04T12:00:00.123456Z"]], "exceedingKeys": [],
    }  # fmt: skip
    for wrong in (
        (*where, "--archive", str(archive / "absent")), ("--cluster", "7", "--from", where[5], "--to", where[3]),
        ("--cluster", "7", "--from", "yesterday", "--to", where[5]),
    ):  # fmt: skip
        refused = run_django("reconcile_telemetry", *wrong)
        assert refused.returncode not in {0, 1} or "Error" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_request_that_dies_between_store_and_archive_is_found_and_made_up_for(archive: Path) -> None:
    event = llm("a")

    def die(step: str) -> None:
        if step == "otlp.stored":
            raise ConnectionError

    steps.hook = die
    try:
        with pytest.raises(ConnectionError):
            send(event)
    finally:
        steps.hook = None
    one = compared(archive)[Kind.LLM_BILLING]
    assert (one.stored, one.archived, one.lacking) == (1, 0, (("a", "2026-03-04T12:00:00.123456Z"),))
    send(event)
    assert compared(archive)[Kind.LLM_BILLING].agrees
