"""What the receiver counts and what its store shows: names, closed reasons, zeros from the start, several processes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from config.gauges import samples
from metering.clusters.authenticate import Reason
from metering.otlp import metrics
from metering.otlp.days import ensure_ahead
from metering.otlp.fields import COLUMNS, Field
from metering.otlp.metrics import METRICS, REASONS
from metering.otlp.tasks import identify_events, keep_days
from tests.otlp.make import NOON, body, llm
from tests.otlp.server import Server
from tests.otlp.storing import put, rows


@pytest.mark.spec("T11")
def test_the_contract_is_this_list() -> None:
    assert {(metric.name, str(metric.kind), metric.labels) for metric in METRICS} == {
        ("otlp_dropped_total", "counter", ("reason",)),
        ("otlp_auth_failed_total", "counter", ("reason",)),
        ("otlp_events_ingested_total", "counter", ()),
        ("otlp_stored_total", "counter", ()),
        ("otlp_duplicates_total", "counter", ()),
        ("otlp_conflicts_total", "counter", ("reason",)),
        ("otlp_disagreements_total", "counter", ("reason",)),
        ("otlp_rate_limited_total", "counter", ()),
        ("otlp_limiter_lost_total", "counter", ()),
        ("otlp_refused_bodies_total", "counter", ("reason",)),
        ("otlp_unavailable_total", "counter", ("reason",)),
        ("otlp_request_seconds", "histogram", ()),
    }


@pytest.mark.spec("T11", "T7")
def test_every_reason_is_of_a_closed_list_of_bare_names() -> None:
    assert set(REASONS) == {metric.name for metric in METRICS if metric.labels == ("reason",)}
    assert {"event_id", "tenant_name", "namespace", "occurred_at", "manager_key_id"} <= set(
        REASONS["otlp_dropped_total"]
    )
    stored = {column.field for columns in COLUMNS.values() for column in columns}
    assert set(Field) == stored | {Field.EVENT_TYPE, Field.OCCURRED_AT}
    assert {str(reason) for reason in Reason} == {
        "missing_header", "malformed_header", "token_not_found", "token_revoked", "token_expired",
    }  # fmt: skip
    assert REASONS["otlp_auth_failed_total"] == tuple(Reason)


@pytest.mark.spec("T11")
def test_every_counter_is_there_at_zero_from_the_start(server: Server) -> None:
    page = server.get("/metrics").body.decode()
    for metric in METRICS:
        assert metric.name in page
        for reason in REASONS.get(metric.name, ()):
            assert f'{metric.name}{{reason="{reason}"}}' in page


@pytest.mark.spec("T11")
def test_all_processes_count_into_one_page(server: Server) -> None:
    names = ("otlp_events_ingested_total", "otlp_stored_total", "otlp_duplicates_total")
    before = [server.counted(name) for name in names]
    events = [llm(f"e-{number}") for number in range(5)]
    for _ in range(6):
        assert server.post(body(events)).status == 200
    assert [server.counted(name) - was for name, was in zip(names, before, strict=True)] == [30, 5, 25]
    assert server.counted("otlp_request_seconds_count") >= 6


@pytest.mark.spec("T11")
def test_conflicts_and_disagreements_are_counted_by_reason(server: Server) -> None:
    before = server.counted("otlp_conflicts_total", reason="content")
    disagreed = server.counted("otlp_disagreements_total", reason="namespace")
    server.post(body([llm("a")]))
    server.post(body([llm("a", provider="q")], resource={"namespace": "other"}))
    assert server.counted("otlp_conflicts_total", reason="content") == before + 1
    assert server.counted("otlp_disagreements_total", reason="namespace") == disagreed + 1


@pytest.mark.spec("T11")
def test_the_store_shows_days_ahead_conflicts_and_how_far_the_scan_is_behind(telemetry: None) -> None:
    ensure_ahead(timezone.now().date(), ahead=3)
    put([llm("a")])
    put([llm("a", provider="q")])
    put([llm("b", at=NOON)])
    put([llm("b", at=NOON + timedelta(hours=1))])
    identify_events()
    found = {(sample.name, *sample.labels): sample.value for sample in samples(patience=10)}
    assert found["otlp_days_ahead", "llm_billing"] >= 3
    assert found["otlp_days_ahead", "resource_utilization"] >= 3
    assert found["otlp_conflict_rows", "content"] == 1
    assert found["otlp_conflict_rows", "two_times"] == 1
    assert found["otlp_conflict_rows", "cluster"] == 0
    assert 0 <= found["otlp_identity_lag_seconds", "llm_billing"] < 60


def test_the_scheduled_work_may_run_twice_and_on_an_empty_store(telemetry: None) -> None:
    for _ in range(2):
        keep_days()
        identify_events()
    assert len(rows("SELECT kind FROM telemetry_identity_scans")) == 2


def test_a_process_that_shows_its_counters_twice_changes_nothing() -> None:
    metrics.begin()
    metrics.begin()
