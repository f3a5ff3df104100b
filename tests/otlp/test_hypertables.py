"""On hypertables: a chunk per day, and compressed ones that take duplicates and late events as others do (T10, T13)."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from metering.otlp.store import Outcome
from tests.otlp.make import llm
from tests.otlp.storing import TODAY, counts, has_timescale, parts, put, rows, stored
from tests.otlp.test_store import threads

DAY = timedelta(days=1)
COMPRESSION = """
ALTER TABLE llm_billing_events SET (
    timescaledb.compress, timescaledb.compress_segmentby = 'cluster_id',
    timescaledb.compress_orderby = 'occurred_at, event_id')
"""
COMPRESS = "SELECT count(timescaledb.compress_chunk(c)) FROM timescaledb.show_chunks('llm_billing_events') c"


@pytest.fixture
def compressed(telemetry: None) -> list[Any]:
    """Twenty events on each of three days, compressed."""
    if not has_timescale():
        pytest.skip("TimescaleDB is not installed")
    events = [llm(f"e-{day}-{n}", at=TODAY - day * DAY + n * DAY / 50) for day in range(3) for n in range(20)]
    put(events)
    with connections["telemetry.schema"].cursor() as cursor:
        cursor.execute(COMPRESSION)
        cursor.execute(COMPRESS)
        assert cursor.fetchone() == (3,)
    return events


@pytest.mark.spec("T10")
def test_each_day_is_a_chunk(telemetry: None) -> None:
    if not has_timescale():
        pytest.skip("TimescaleDB is not installed")
    put([llm(at=TODAY - day * DAY) for day in range(4)])
    assert len(parts("llm_billing_events")) == 4


@pytest.mark.spec("T10")
@pytest.mark.trap("T13")
def test_a_compressed_chunk_takes_duplicates_conflicts_and_late_events(compressed: list[Any]) -> None:
    assert counts(put(compressed)) == (0, 60, 0)
    late = llm("late", at=TODAY - 2 * DAY + timedelta(minutes=1))
    assert counts(put([late, *compressed[:5]])) == (1, 5, 0)
    changed = llm("e-1-3", at=TODAY - DAY + 3 * DAY / 50, prompt_tokens=9)
    assert counts(put([changed])) == (0, 0, 1)
    assert rows("SELECT fields FROM telemetry_conflicts") == [("prompt_tokens",)]
    assert stored() == 61


@pytest.mark.trap("T13")
def test_parallel_requests_into_compressed_chunks_store_each_event_once(compressed: list[Any]) -> None:
    new = [llm(f"n-{n}", at=TODAY - (n % 3) * DAY + n * DAY / 500) for n in range(200)]
    mixed = [*compressed, *new]
    orders = [mixed, mixed[::-1], mixed[100:] + mixed[:100], mixed[::2] + mixed[1::2]]
    for outcome in threads(*(lambda order=order: put(order) for order in orders)):
        assert isinstance(outcome, Outcome), outcome
    assert stored() == 260
    assert rows("SELECT count(*) FROM (SELECT DISTINCT event_id, occurred_at FROM llm_billing_events) e") == [(260,)]
