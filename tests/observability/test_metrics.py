"""What /metrics shows: the contract of names and labels, counters of several processes, gauges of the databases."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections, transaction
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from config.gauges import SECTIONS, all_gauges, samples
from config.metric_files import fold, start_empty
from config.metrics import all_metrics
from config.owners import OWNERS, owner_named, producers
from outbox import metrics
from outbox.append import append_many
from outbox.metrics import MAX_VALUES, METRICS, OTHER, Kind, bounded
from tests.outbox.make import admission

LABELS = {
    "across": {"version", "region", "owner", "role", "section", "table", "source"},
    "outbox": {"producer", "destination", "event_type", "schema_version", "code", "reason", "phase", "outcome"},
    "rest": {"verdict", "consumer", "state", "business", "kind"},
}
"""Every label there may be. Each has a value list that a release or the owner table closes, or that is cut short."""
FORBIDDEN = re.compile(r"tenant|organi[sz]ation|user|request|trace|run|reservation|event_id|_id$|operation|correlation")


@pytest.mark.spec("O33")
def test_the_contract_is_this_list() -> None:
    assert {(metric.name, str(metric.kind), metric.labels) for metric in METRICS} == {
        ("outbox_claimed_total", "counter", ("producer", "destination")),
        ("outbox_lease_expired_total", "counter", ("producer", "destination")),
        ("outbox_acknowledged_total", "counter", ("producer", "destination")),
        ("outbox_retried_total", "counter", ("producer", "destination", "event_type", "schema_version", "code")),
        ("outbox_quarantined_total", "counter", ("producer", "destination", "event_type", "schema_version", "reason")),
        ("outbox_fenced_total", "counter", ("producer", "destination")),
        ("outbox_ack_rejected_total", "counter", ("producer", "destination", "reason")),
        ("outbox_given_back_total", "counter", ("producer", "destination")),
        ("outbox_renewed_total", "counter", ("producer",)),
        ("outbox_lost_leases_total", "counter", ("producer",)),
        ("outbox_batch_seconds", "histogram", ("producer", "destination", "phase")),
        ("outbox_nudges_total", "counter", ("owner", "outcome")),
        ("outbox_published_total", "counter", ("producer", "verdict")),
        ("outbox_consumer_applied_total", "counter", ("consumer", "outcome")),
        ("outbox_apply_delay_seconds", "histogram", ("consumer",)),
        ("outbox_rounds_total", "counter", ("producer", "outcome")),
        ("outbox_last_round_timestamp_seconds", "gauge", ("producer",)),
        ("outbox_worker_processes", "gauge", ("version", "region")),
    }
    assert {(metric.name, metric.labels) for metric in all_gauges()} == {
        ("backbone_info", ("version", "region")),
        ("owner_up", ("owner",)),
        ("owner_section_up", ("owner", "section")),
        ("owner_connections", ("owner", "role")),
        ("owner_max_connections", ("owner",)),
        ("owner_idle_in_transaction_seconds", ("owner",)),
        ("owner_oldest_transaction_seconds", ("owner",)),
        ("owner_dead_tuples", ("owner", "table")),
        ("owner_unapplied_migrations", ("owner",)),
        ("outbox_pending", ("producer", "destination", "state")),
        ("outbox_oldest_pending_seconds", ("producer", "destination", "state")),
        ("outbox_expired_lease_seconds", ("producer", "destination")),
        ("outbox_quarantine_rows", ("producer", "destination", "event_type", "reason")),
        ("outbox_schema_rejects", ("producer", "destination")),
        ("outbox_last_quarantined_timestamp_seconds", ("producer",)),
        ("operations_unapplied_events", ("source",)),
        ("operations_acknowledged_without_receipt", ()),
        ("operations_revision_gaps", ("producer",)),
        ("operations_oldest_revision_gap_seconds", ("producer",)),
        ("operations_unlinked_reservations", ()),
        ("operations_oldest_unlinked_reservation_seconds", ()),
        ("billing_unconfirmed_holds", ()),
        ("billing_oldest_unconfirmed_hold_seconds", ()),
        ("commercial_held_reservations", ("business",)),
        ("commercial_oldest_held_seconds", ("business",)),
        ("files_open_changes", ()),
        ("files_failing_changes", ()),
        ("files_oldest_open_seconds", ()),
        ("otlp_days_ahead", ("kind",)),
        ("otlp_identity_lag_seconds", ("kind",)),
        ("otlp_conflict_rows", ("reason",)),
        ("consumption_windows_due", ()),
        ("consumption_oldest_due_window_seconds", ()),
        ("consumption_orphan_lines", ("reason",)),
        ("consumption_oldest_orphan_seconds", ("reason",)),
        ("consumption_unposted_charges", ("state", "reason")),
        ("consumption_oldest_unposted_charge_seconds", ("state", "reason")),
    }


@pytest.mark.spec("O33")
def test_no_metric_has_a_label_that_could_hold_an_id() -> None:
    allowed = set().union(*LABELS.values())
    names = [metric.name for metric in all_metrics()]
    assert len(names) == len(set(names))
    for metric in all_metrics():
        assert set(metric.labels) <= allowed, metric.name
        assert not any(FORBIDDEN.search(label) for label in metric.labels), metric.name
        assert metric.meaning.endswith("."), metric.name
        assert bool(metric.buckets) is (metric.kind is Kind.HISTOGRAM), metric.name


@pytest.mark.spec("O33")
def test_values_from_outside_are_cut_to_a_short_list() -> None:
    assert bounded("made_up", "9b2fca10-5f0e-7cc4-8a10-0242ac120002" * 4) == OTHER
    assert bounded("made_up", "Tenant ACME: failed") == OTHER
    kept = {bounded("made_up", f"code_{number}") for number in range(1000)}
    assert len(kept) == MAX_VALUES + 1
    assert OTHER in kept
    assert bounded("made_up", "code_0") == "code_0"


COUNTING = """
import sys
from outbox import metrics
for _ in range(int(sys.argv[1])):
    metrics.claimed("core", "core_operations", 2)
    metrics.batch_seconds("core", "core_operations", "claim", 0.02)
metrics.round_finished(producer="core", ok=True)
metrics.worker_started(version="9", region="here")
print("counted", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def metric_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of counters of its own."""
    place = tmp_path / "metrics"
    start_empty(place)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(place))
    return place


@pytest.fixture
def counting(metric_files: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Four processes that have counted 25, 50, 75 and 100 batches of two, and live on."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTING, str(25 * number)],
            env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(metric_files)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in (1, 2, 3, 4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "counted\n"
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def counted(name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Samples of one name from a scrape of the counters."""
    from prometheus_client import generate_latest

    from config.metrics import counters

    families = text_string_to_metric_families(generate_latest(counters()).decode())
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


ROUTE = (("destination", "core_operations"), ("producer", "core"))


@pytest.mark.spec("O33")
def test_counters_of_several_processes_add_up_also_when_some_are_killed(
    counting: list[subprocess.Popen[str]], metric_files: Path
) -> None:
    assert counted("outbox_claimed_total") == {ROUTE: 500.0}
    assert counted("outbox_batch_seconds_count") == {(*ROUTE[:1], ("phase", "claim"), ROUTE[1]): 250.0}
    assert counted("outbox_worker_processes") == {(("region", "here"), ("version", "9")): 4.0}
    for process in counting[:2]:
        process.send_signal(signal.SIGKILL)
        process.wait()
    for _ in range(2):
        assert counted("outbox_claimed_total") == {ROUTE: 500.0}
        assert counted("outbox_batch_seconds_count") == {(*ROUTE[:1], ("phase", "claim"), ROUTE[1]): 250.0}
        assert counted("outbox_worker_processes") == {(("region", "here"), ("version", "9")): 2.0}
    assert len(list(metric_files.glob("counter_*.db"))) == 3, "two living processes and the sum of the dead ones"
    assert len(counted("outbox_last_round_timestamp_seconds")) == 1


@pytest.mark.spec("O33")
def test_dead_processes_leave_one_file_per_kind_however_many_they_were(
    counting: list[subprocess.Popen[str]], metric_files: Path
) -> None:
    for process in counting:
        process.kill()
        process.wait()
        fold(metric_files)
    assert sorted(path.name for path in metric_files.glob("*.db")) == [
        "counter_0.db",
        "gauge_max_0.db",
        "histogram_0.db",
    ]
    assert counted("outbox_claimed_total") == {ROUTE: 500.0}
    start_empty(metric_files)
    assert not list(metric_files.glob("*.db"))


def scraped(client: Client) -> dict[str, dict[tuple[str, ...], float]]:
    """Every gauge of the databases in one scrape: label values in sorted order of their names."""
    response = client.get("/metrics")
    assert response.status_code == 200
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(response.content.decode()):
        for sample in family.samples:
            values = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[values] = sample.value
    return found


@pytest.mark.spec("O33")
@pytest.mark.trap("D22")
def test_backlog_and_age_are_true_though_no_worker_runs(database: None, client: Client) -> None:
    with transaction.atomic(using="default"):
        append_many([*admission(), *admission()], using="default")
    found = scraped(client)
    assert found["outbox_pending"]["core_operations", "core", "due"] == 4
    assert found["outbox_oldest_pending_seconds"]["core_operations", "core", "in_delivery"] > 0
    assert found["outbox_pending"]["metering_input_processor", "execution", "awaiting_consumer"] == 0
    assert found["operations_unapplied_events"]["core",] == 4
    assert found["operations_acknowledged_without_receipt"][()] == 0
    assert set(found["owner_up"].values()) == {1.0}
    assert set(found["owner_section_up"].values()) == {1.0}
    assert found["owner_unapplied_migrations"] == {(owner.name,): 0.0 for owner in OWNERS}
    assert found["owner_connections"]["core", "owner"] >= 1
    assert found["billing_unconfirmed_holds"][()] == 0


@pytest.mark.spec("O33")
def test_every_gauge_of_the_tables_is_there_and_nothing_else(database: None) -> None:
    labels = {metric.name: len(metric.labels) for metric in all_gauges()}
    found = list(samples(patience=10))
    assert {sample.name for sample in found} == set(labels) - {"outbox_quarantine_rows"}
    assert all(len(sample.labels) == labels[sample.name] for sample in found)
    assert len({(sample.name, sample.labels) for sample in found}) == len(found)
    expected = sum(place.reads(owner) for place in SECTIONS for owner in OWNERS)
    assert sum(sample.name == "owner_section_up" for sample in found) == expected


@pytest.mark.spec("O33")
def test_the_number_of_series_does_not_grow_with_events(database: None, client: Client) -> None:
    before = {name: set(values) for name, values in scraped(client).items()}
    with transaction.atomic(using="default"):
        append_many([event for _ in range(50) for event in admission()], using="default")
    after = {name: set(values) for name, values in scraped(client).items()}
    databases = {metric.name for metric in all_gauges()} - {"owner_connections"}
    assert {name: after[name] for name in databases & after.keys()} == {
        name: before[name] for name in databases & before.keys()
    }


@pytest.mark.spec("O33")
def test_a_database_that_is_down_does_not_break_the_scrape(
    database: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = connections[owner_named("billing").read_alias]
    monkeypatch.setitem(read.settings_dict, "PORT", 1)
    for owner in OWNERS:
        connections[owner.read_alias].close()
    found = scraped(client)
    assert found["owner_up"] == {(owner.name,): float(owner.name != "billing") for owner in OWNERS}
    assert {key[1] for key in found["outbox_pending"]} == {owner.name for owner in producers()} - {"billing"}


@pytest.mark.spec("O33")
def test_a_section_that_takes_too_long_is_reported_and_the_others_stay(database: None, client: Client) -> None:
    with connections["billing.schema"].cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE billing_reservations IN ACCESS EXCLUSIVE MODE")
        try:
            found = {(sample.name, *sample.labels): sample.value for sample in samples(patience=1.5)}
        finally:
            cursor.execute("ROLLBACK")
    assert found["owner_section_up", "billing", "holds"] == 0
    assert found["owner_section_up", "billing", "outbox"] == 1
    assert found["owner_up", "billing"] == 1
    assert found["owner_up", "core"] == 1


@pytest.mark.spec("O33")
@pytest.mark.trap("D19")
def test_a_session_idle_in_its_transaction_is_seen_with_its_age_and_the_dead_rows_behind_it(
    database: None, client: Client
) -> None:
    with transaction.atomic(using="default"), connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")
        found = scraped(client)
    assert found["owner_idle_in_transaction_seconds"]["core",] > 0
    assert found["owner_oldest_transaction_seconds"]["core",] > 0
    assert found["owner_idle_in_transaction_seconds"]["execution",] == 0
    assert found["owner_dead_tuples"]["core", "outbox_deliveries"] >= 0


@pytest.mark.spec("O33")
def test_metrics_are_for_the_networks_that_were_named(database: None, client: Client) -> None:
    assert client.get("/metrics", REMOTE_ADDR="203.0.113.9").status_code == 404
    assert client.get("/metrics", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 404
    assert client.get("/metrics", REMOTE_ADDR="::ffff:127.0.0.1").status_code == 200
    assert client.post("/metrics").status_code == 405


def test_counting_nothing_creates_no_series() -> None:
    before = counted("outbox_fenced_total")
    metrics.fenced("core", "nowhere", 0)
    assert counted("outbox_fenced_total") == before
