"""Many at once: rescuers and settlers, crowded tables, and a proof that runs beside the work (D17, D18, D27)."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connections

from config.owners import owner_named
from config.verify.report import verify
from outbox.claim import BEGINNING, CLAIM, Claimer
from outbox.deliver import deliver
from outbox.dispatch import Dispatcher
from outbox.members import Members
from outbox.settle import settle
from outbox.transport import transport
from tests.crash.proof import drained
from tests.outbox.conftest import rows
from tests.outbox.make import admission
from tests.verify.tamper import administrator, tamper
from tests.verify.world import append, drain

HERE = "core_operations"
ALIAS = owner_named("core").dispatch_alias


def raw() -> "psycopg.Connection[tuple[Any, ...]]":
    """The dispatcher's connection of this thread."""
    connections[ALIAS].ensure_connection()
    return connections[ALIAS].connection  # type: ignore[no-any-return]  # Django does not type its raw connection


@contextmanager
def beside(*works: Callable[[], None]) -> Iterator[list[BaseException]]:
    """Run each work in a thread of its own beside the block; what they raise is collected."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        for thread in threads:
            thread.join()


RUN_OUT = """
UPDATE outbox_deliveries SET lease_expires_at = clock_timestamp() WHERE ctid IN (
    SELECT ctid FROM outbox_deliveries WHERE status = 'leased' ORDER BY event_id FOR UPDATE SKIP LOCKED)
"""


@pytest.mark.spec("O19")
@pytest.mark.trap("D1", "D17")
def test_four_rescuers_and_four_settlers_on_the_same_rows_never_deadlock(database: None) -> None:
    append(*[event for _ in range(100) for event in admission()])
    gate, working = threading.Barrier(9), threading.Semaphore(0)

    def rescue() -> None:
        claimer = Claimer("rescuer", Members(ALIAS), 50, 60, 0.000001)
        gate.wait()
        for _ in range(20):
            claimer.claim(raw(), HERE)
        working.release()

    def work() -> None:
        claimer = Claimer("settler", Members(ALIAS), 50, 60, 0.000001)
        gate.wait()
        for _ in range(10):
            claimed = claimer.claim(raw(), HERE).rows
            if claimed:
                settlement = deliver(claimed, producer="core", destination=HERE, transport=transport())
                settle(raw(), settlement, producer="core", destination=HERE)
        working.release()

    def let_leases_run_out() -> None:
        gate.wait()
        for _ in range(8):
            while not working.acquire(blocking=False):
                tamper("core", RUN_OUT)

    with beside(*[rescue] * 4, *[work] * 4, let_leases_run_out) as errors:
        pass
    assert not errors
    tamper("core", RUN_OUT)
    drain()
    drained()
    assert rows("SELECT sum(applied_events) FROM projection_build_runs") == [(200,)]
    assert rows("SELECT max(attempt_no) > 1 FROM outbox_delivery_attempt_starts") == [(True,)]
    assert verify().ok


CROWD = """
WITH events AS (
    INSERT INTO outbox_events (event_id, event_type, schema_version, delivery_set_version,
        delivery_set_definition_schema_version, delivery_set_definition_digest_algorithm_version,
        delivery_set_definition_digest, aggregate_id, aggregate_revision, tenant_kind, tenant_id, workspace_id,
        correlation_id, operation_id, event_envelope, event_envelope_digest_algorithm_version, event_envelope_sha256,
        occurred_at)
    SELECT gen_random_uuid(), event_type, schema_version, delivery_set_version, delivery_set_definition_schema_version,
        delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest, 'crowd:' || n, 1, tenant_kind,
        tenant_id, workspace_id, correlation_id, operation_id, '{"payload":{}}', 'jcs-sha256-v1',
        event_envelope_sha256, occurred_at
      FROM (SELECT * FROM outbox_events LIMIT 1) e, generate_series(1, 20000) n
    RETURNING *)
INSERT INTO outbox_deliveries (event_id, destination, delivery_set_version, event_type, schema_version, consumer_name,
        mandatory, expected_receipt_type, expected_receipt_schema_version, required_projection_name,
        required_projection_version, status, available_at, created_at)
SELECT e.event_id, d.destination, d.delivery_set_version, d.event_type, d.schema_version, d.consumer_name, true,
       d.expected_receipt_type, d.expected_receipt_schema_version, d.required_projection_name,
       d.required_projection_version, CASE WHEN row_number() OVER () % 2 = 0 THEN 'quarantined' ELSE 'pending' END,
       now() + interval '1 day', now()
  FROM events e, (SELECT * FROM outbox_deliveries LIMIT 1) d
"""


@pytest.mark.spec("O19")
@pytest.mark.trap("D18")
def test_a_claim_beside_a_crowd_of_quarantined_and_future_rows_reads_only_what_is_due(database: None) -> None:
    append(*admission())
    tamper("core", CROWD)
    append(*[event for _ in range(50) for event in admission()])
    with administrator("core") as connection:
        connection.execute("ANALYZE outbox_deliveries, outbox_events")
    parameters = {"destination": HERE, "worker": "w", "mark": BEGINNING, "rescue": True}
    statement = "EXPLAIN (ANALYZE, FORMAT JSON) " + CLAIM.format(batch=500, lease=60)
    with raw().transaction(force_rollback=True):
        found = raw().execute(statement, parameters, prepare=False).fetchone()
    assert found is not None
    scans = list(scans_of(found[0][0]["Plan"]))
    crowded = [scan for scan in scans if scan["Relation Name"] == "outbox_deliveries"]
    assert crowded
    assert all(scan["Node Type"] != "Seq Scan" for scan in crowded), crowded
    assert max(scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) for scan in crowded) <= 102


def scans_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node of a plan that reads a table."""
    if "Relation Name" in plan and plan["Node Type"] != "ModifyTable":
        yield plan
    for child in plan.get("Plans", ()):
        yield from scans_of(child)


@pytest.mark.spec("O26")
@pytest.mark.trap("D27")
def test_a_proof_beside_running_work_never_reports_what_is_in_flight(database: None) -> None:
    done = threading.Event()

    def produce() -> None:
        for _ in range(40):
            append(*[event for _ in range(5) for event in admission()])
        done.set()

    def dispatch() -> None:
        with Dispatcher(owner_named("core")) as dispatcher:
            while not done.is_set():
                dispatcher.drain()

    proofs = 0
    with beside(produce, dispatch, dispatch) as errors:
        while not done.is_set():
            report = verify()
            assert report.ok, [tally.samples for _, tally in report.found if tally.violations]
            proofs += 1
    assert not errors
    assert proofs
    drain()
    assert verify().ok
