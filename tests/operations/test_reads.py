"""What operators read: operations, timelines by page, and exact identifiers."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from operations.timelines import reads
from operations.timelines.models import IdentifierKind, LinkState, ReservationState
from operations.timelines.reads import Position, operation, search, timeline
from tests.operations.facts import PROJECTOR, fact, fact_delivery
from tests.operations.make import acknowledged, admission, apply, changed, delivery, new_event_id, one, rows

MANY = 60_000
"""Rows beside which a page must still be found by its index."""


def long_timeline(operation_id: str, *, facts: int) -> None:
    """An operation with a run and `facts` events of another owner, two at each moment."""
    pair = admission(operation_id=operation_id)
    acknowledged(apply(*pair.requests))
    events = [
        fact(
            aggregate_id=f"testing:{uuid.uuid4()}",
            revision=1,
            operation_id=operation_id,
            occurred_at=f"2026-10-02T00:00:{number // 2:02}.000000Z",
        )
        for number in range(facts)
    ]
    acknowledged(PROJECTOR.consume([fact_delivery(event) for event in events]))


@pytest.mark.spec("O26")
def test_an_operation_says_what_its_two_events_said(database: None) -> None:
    pair = admission()
    acknowledged(apply(*pair.requests))
    found = operation(pair.operation_id)
    assert found is not None
    assert found.run_id == pair.run.aggregate_id
    assert found.run_event_id == pair.run.event_id
    assert (found.tenant_kind, found.tenant_id, found.project_id) == ("organization", "organization-1", "project-1")
    assert found.run_admission_manifest.ref == pair.run.payload["runAdmissionManifestRef"]
    assert found.reservation_state is ReservationState.LINKED
    assert found.reservation_event_id == pair.wallet.event_id
    assert (found.currency, found.hold_amount_picos) == ("USD", 1234567890123)
    assert operation("operation-unknown") is None
    assert operation("\x00") is None


@pytest.mark.spec("O26")
def test_pages_of_a_timeline_hold_every_entry_once_and_in_order(database: None) -> None:
    long_timeline("operation-1", facts=25)
    long_timeline("operation-2", facts=3)
    seen: list[reads.Entry] = []
    after = None
    while True:
        page = timeline("operation-1", after=after, limit=4)
        seen.extend(page.entries)
        if page.next is None:
            break
        after = Position.parse(str(page.next))
    keys = [(entry.occurred_at, entry.event_id) for entry in seen]
    assert keys == sorted(set(keys))
    assert len(keys) == 27
    assert [entry.event_type for entry in seen[:2]] == ["run.created@2.0", "wallet.reserved@2.0"]


@pytest.mark.spec("O26")
def test_what_is_applied_between_two_pages_neither_repeats_nor_hides_an_entry(database: None) -> None:
    long_timeline("operation-1", facts=6)
    first = timeline("operation-1", limit=4)
    late = fact(
        aggregate_id="testing:late", revision=1, operation_id="operation-1", occurred_at="2026-10-01T12:00:00.000001Z"
    )
    acknowledged(PROJECTOR.consume([fact_delivery(late)]))
    second = timeline("operation-1", after=first.next, limit=100)
    seen = [entry.event_id for entry in (*first.entries, *second.entries)]
    assert len(seen) == len(set(seen)) == 8


@pytest.mark.spec("O29")
def test_without_a_verified_run_there_is_no_timeline(database: None) -> None:
    events = [fact(aggregate_id=f"testing:{number}", revision=1, operation_id="operation-1") for number in range(3)]
    acknowledged(PROJECTOR.consume([fact_delivery(event) for event in events]))
    assert timeline("operation-1").entries == ()
    acknowledged(apply(delivery(admission(operation_id="operation-1").run)))
    assert len(timeline("operation-1").entries) == 4


@pytest.mark.spec("O26")
def test_every_exact_identifier_leads_to_its_operation(database: None) -> None:
    pair = admission()
    acknowledged(apply(*pair.requests))
    run, wallet = pair.run, pair.wallet
    for value, kinds in (
        (run.operation_id, {IdentifierKind.OPERATION}),
        (run.aggregate_id, {IdentifierKind.RUN}),
        (run.correlation_id, {IdentifierKind.CORRELATION}),
        (wallet.aggregate_id, {IdentifierKind.RESERVATION}),
        (wallet.event_id, {IdentifierKind.EVENT}),
        (run.event_id, {IdentifierKind.EVENT, IdentifierKind.CAUSATION}),
    ):
        found = search(f" {value} ")
        assert {hit.kind for hit in found.hits} == kinds, value
        assert {hit.operation_id for hit in found.hits} == {pair.operation_id}
        assert not found.more


@pytest.mark.spec("O26", "O29")
def test_an_unlinked_reservation_is_found_by_each_of_its_identifiers_and_by_its_operation_once_linked(
    database: None,
) -> None:
    pair = admission()
    acknowledged(apply(delivery(pair.wallet)))
    identifiers = (
        pair.wallet.event_id,
        pair.wallet.aggregate_id,
        pair.run.aggregate_id,
        pair.operation_id,
        pair.wallet.correlation_id,
        pair.run.event_id,
    )
    for value in identifiers:
        (hit,) = search(value).hits
        assert (hit.operation_id, hit.event_id, hit.unlinked_state) == (None, pair.wallet.event_id, LinkState.PENDING)
    acknowledged(apply(delivery(pair.run)))
    for value in identifiers:
        hits = search(value).hits
        assert hits
        assert {hit.operation_id for hit in hits} == {pair.operation_id}


@pytest.mark.spec("O29")
def test_a_mismatched_reservation_never_leads_to_an_operation(database: None) -> None:
    pair = admission()
    wrong = changed(
        pair.wallet, aggregate_id="reservation:wrong", payload={"billingReservationId": "reservation:wrong"}
    )
    acknowledged(apply(delivery(pair.run), delivery(wrong)))
    (hit,) = search("reservation:wrong").hits
    assert (hit.operation_id, hit.unlinked_state) == (None, LinkState.MISMATCHED)


@pytest.mark.spec("O26")
@pytest.mark.parametrize("text", ["", " ", "x" * 201, "a b\x00", "é", "%", "operation"])
def test_what_is_no_exact_identifier_finds_nothing(database: None, text: str) -> None:
    acknowledged(apply(*admission().requests))
    assert search(text).hits == ()


@pytest.mark.spec("O26")
def test_a_shared_correlation_says_that_there_is_more(database: None) -> None:
    pairs = [admission(correlation_id="shared") for _ in range(reads.MAX_HITS + 5)]
    acknowledged(apply(*(request for pair in pairs for request in pair.requests)))
    found = search("shared")
    assert len(found.hits) == reads.MAX_HITS
    assert found.more


@pytest.mark.spec("O26")
def test_each_read_is_one_statement_however_much_it_shows(database: None) -> None:
    long_timeline("operation-1", facts=40)
    for read in (
        lambda: operation("operation-1"),
        lambda: timeline("operation-1", limit=500),
        lambda: search("operation-1"),
        lambda: search("correlation-of-facts"),
    ):
        with CaptureQueriesContext(connections["default.read"]) as queries:
            read()
        assert len(queries) == 1


@pytest.mark.spec("O8", "O26")
def test_rows_of_another_projection_version_are_never_shown(database: None) -> None:
    pair = admission()
    acknowledged(apply(*pair.requests))
    with connections["default"].cursor() as cursor:
        for table, columns in (
            (
                "timeline_entries",
                "operation_id, '2', occurred_at, event_id, event_type, event_schema_version, producer,"
                " aggregate_id, aggregate_revision, correlation_id, causation_id, applied_at",
            ),
            ("exact_identifiers", "value, kind, event_id, '2', operation_id"),
        ):
            cursor.execute(f"INSERT INTO {table} SELECT {columns} FROM {table}")
    assert len(timeline(pair.operation_id).entries) == 2
    assert len(search(pair.wallet.aggregate_id).hits) == 1


@pytest.mark.parametrize("text", ["", "~", "yesterday~1", "2026-10-02T00:00:00.000000Z~x", "2026-10-02~" + "0" * 32])
def test_a_position_that_was_not_given_out_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Position.parse(text)


def test_a_position_survives_its_text() -> None:
    position = Position(datetime(2026, 10, 2, 1, 2, 3, 4, tzinfo=UTC), new_event_id())
    assert Position.parse(str(position)) == position


@pytest.fixture
def big(database: None) -> None:
    """One operation among very many others, with statistics to match."""
    long_timeline("operation-1", facts=20)
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "INSERT INTO timeline_entries SELECT 'many-' || n / 20, '1', occurred_at + n * interval '1 second',"
            " gen_random_uuid(), event_type, event_schema_version, producer, aggregate_id, aggregate_revision,"
            " correlation_id, causation_id, applied_at"
            " FROM (SELECT * FROM timeline_entries LIMIT 1) t, generate_series(1, %s) n",
            [MANY],
        )
        cursor.execute(
            "INSERT INTO exact_identifiers SELECT 'many-' || n, kind, gen_random_uuid(), '1', operation_id"
            " FROM (SELECT * FROM exact_identifiers LIMIT 1) i, generate_series(1, %s) n",
            [MANY],
        )
        columns = rows(
            "SELECT string_agg(CASE column_name WHEN 'operation_id' THEN '''many-'' || n' WHEN 'run_id' THEN"
            " '''run-'' || n' ELSE column_name END, ', ' ORDER BY ordinal_position),"
            " string_agg(column_name, ', ' ORDER BY ordinal_position) FROM information_schema.columns"
            " WHERE table_name = 'operation_summaries' AND is_identity = 'NO'"
        )
        cursor.execute(
            f"INSERT INTO operation_summaries ({columns[0][1]}) SELECT {columns[0][0]}"
            " FROM (SELECT * FROM operation_summaries LIMIT 1) s, generate_series(1, %s) n",
            [MANY],
        )
    with connections["default.schema"].cursor() as cursor:
        cursor.execute("ANALYZE timeline_entries, exact_identifiers, operation_summaries")


def _scans(plan: dict[str, Any]) -> list[tuple[str, str]]:
    own = [(plan["Relation Name"], plan["Node Type"])] if "Relation Name" in plan else []
    return own + [scan for part in plan.get("Plans", []) for scan in _scans(part)]


@pytest.mark.spec("O26")
def test_on_big_tables_every_read_goes_through_an_index(big: None) -> None:
    sought: dict[str, Any] = {
        "operation": "operation-1",
        "value": "many-77",
        "occurred_at": "2026-10-02T00:00:00Z",
        "event_id": str(uuid.UUID(int=0)),
        "limit": 51,
    }
    for statement in (reads.OPERATION, reads.TIMELINE, reads.SEARCH):
        with connections["default.read"].cursor() as cursor:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", sought)
            found = cursor.fetchone()[0]
        plan = found if isinstance(found, list) else json.loads(found)
        scans = _scans(plan[0]["Plan"])
        assert {table for table, _ in scans} & {"timeline_entries", "exact_identifiers", "operation_summaries"}
        for table, node in scans:
            if table in {"timeline_entries", "exact_identifiers", "operation_summaries"}:
                assert node != "Seq Scan", (table, statement)
    assert one("SELECT count(*) FROM timeline_entries WHERE operation_id = 'operation-1'") == 22


@pytest.mark.spec("O26")
def test_on_big_tables_the_inbox_goes_through_indexes_too(big: None) -> None:
    """Counted by the database itself: a batch reads no table from end to end."""
    tables = ["operations_projection_applied_receipts", "projection_aggregates", "operation_summaries",
              "timeline_entries", "exact_identifiers", "pending_unlinked_reservations", "revision_gaps"]  # fmt: skip
    pairs = [admission() for _ in range(20)]
    acknowledged(apply(*(delivery(pair.run) for pair in pairs[:10])))
    acknowledged(apply(*(delivery(pair.wallet) for pair in pairs[10:])))

    def sequential() -> Any:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY(%s) ORDER BY 1", [tables]
            )
            return cursor.fetchall()

    before = sequential()
    acknowledged(apply(*(delivery(pair.wallet) for pair in pairs[:10]), *(delivery(pair.run) for pair in pairs[10:])))
    acknowledged(apply(*(request for pair in pairs for request in pair.requests)))
    assert sequential() == before
