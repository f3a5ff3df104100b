"""What stored files count and show: the contract of names and labels, and that the numbers are true."""

from pathlib import Path

import pytest
from django.test import Client

from attachments.files import gauges, metrics
from attachments.files.finish import Found
from attachments.files.models import Action, IntentEndedBy, IntentState
from attachments.files.sweep import sweep
from tests.files.killing import killed_at, sweep_all
from tests.files.papers import path_of, remove, write
from tests.observability.test_metrics import counted, scraped

pytestmark = [pytest.mark.spec("O33", "C5")]


def test_the_contract_is_this_list() -> None:
    assert {(metric.name, str(metric.kind), metric.labels) for metric in (*metrics.METRICS, *gauges.GAUGES)} == {
        ("files_staged_total", "counter", ("kind",)),
        ("files_ended_total", "counter", ("outcome", "source")),
        ("files_not_ended_total", "counter", ("outcome",)),
        ("files_swept_total", "counter", ("outcome",)),
        ("files_incoming_removed_total", "counter", ()),
        ("files_last_sweep_timestamp_seconds", "gauge", ()),
        ("files_open_changes", "gauge", ()),
        ("files_failing_changes", "gauge", ()),
        ("files_oldest_open_seconds", "gauge", ()),
    }
    assert set(metrics.ACTIONS) == set(Action.values)
    assert set(metrics.ENDS) == set(IntentState.values) - {"open"}
    assert set(metrics.SOURCES) == set(IntentEndedBy.values)
    assert set(metrics.SWEPT) == {str(found) for found in Found}


def test_changes_and_what_sweeps_find_are_counted_and_what_is_open_is_shown(desk: Path, client: Client) -> None:
    write("a", b"one")
    staged, swept = counted("files_staged_total"), counted("files_swept_total")
    killed_at("commercial.before_commit", lambda: write("a", b"two"))
    killed_at("commercial.committed", lambda: write("b", b"b", claim="other"))
    found = scraped(client)
    assert found["files_open_changes"] == {(): 2.0}
    assert found["files_failing_changes"] == {(): 0.0}
    assert 0 < found["files_oldest_open_seconds"][()] < 60
    assert (sweep_all().kept, sweep().undone) == (1, 0)
    remove(path_of("a"))
    grown = {labels: number - swept[labels] for labels, number in counted("files_swept_total").items()}
    assert grown[(("outcome", "kept"),)] == grown[(("outcome", "undone"),)] == 1
    assert counted("files_staged_total")[(("kind", "remove"),)] == staged[(("kind", "remove"),)] + 1
    found = scraped(client)
    assert found["files_open_changes"] == {(): 0.0}
    assert found["files_last_sweep_timestamp_seconds"][()] > 1e9
