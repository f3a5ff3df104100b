"""The controlled function behind `published_at`."""

import threading
import uuid
from collections.abc import Callable, Iterator

import pytest
from django.db import DatabaseError, connections, transaction

from outbox.append import append_many
from outbox.contracts.delivery_set import DeliverySetDefinition, DeliverySetMember
from outbox.contracts.first_release import first_release, member
from outbox.dispatch import Dispatcher
from outbox.register import activate, register
from tests.outbox.conftest import FarSide, rows
from tests.outbox.make import run_created
from tests.outbox.test_append import forget_definitions

ATTEMPTS = "SELECT attempt_id FROM outbox_delivery_attempt_starts ORDER BY destination"


@pytest.fixture
def two_destinations(database: None) -> Iterator[None]:
    """Core delivers `run.created@2.0` to two mandatory destinations."""
    second: DeliverySetMember = member("run.created@2.0", "billing_settlement_catch_up")
    definition = DeliverySetDefinition.define(version="two", members=[*first_release().members, second])
    register(definition, source_release="test", using="default.schema")
    activate("two", using="default.schema")
    yield
    forget_definitions()


def _lease(count: int) -> dict[tuple[str, str], str]:
    """Append events and lease all their deliveries; (event, destination) to attempt."""
    with transaction.atomic(using="default"):
        append_many([run_created() for _ in range(count)], using="default")
    found = rows(
        "WITH taken AS (UPDATE outbox_deliveries SET status = 'leased', lease_owner = 'w',"
        " lease_token = lease_token + 1,"
        " lease_expires_at = now() + interval '1 hour', current_attempt_id = gen_random_uuid(), attempt_count = 1"
        " WHERE status = 'pending'"
        " RETURNING *), started AS (INSERT INTO outbox_delivery_attempt_starts (attempt_id, event_id, destination,"
        " attempt_no, lease_token, lease_owner) SELECT current_attempt_id, event_id, destination, attempt_count,"
        " lease_token, lease_owner FROM taken) SELECT event_id::text, destination, current_attempt_id::text FROM taken",
        using="default.dispatch",
    )
    return {(event, destination): attempt for event, destination, attempt in found}


ACKNOWLEDGE = """
WITH done AS (
    UPDATE outbox_deliveries d SET status = 'acknowledged', delivered_at = now(), lease_owner = NULL,
           lease_expires_at = NULL, ack_consumer_name = consumer_name, ack_receipt_type = expected_receipt_type,
           ack_receipt_ref = 'r', ack_receipt_schema_version = expected_receipt_schema_version,
           ack_receipt_digest_algorithm_version = 'jcs-sha256-v1', ack_receipt_digest = repeat('0', 64),
           ack_event_envelope_digest_algorithm_version = 'jcs-sha256-v1',
           ack_event_envelope_sha256 = {digest}
      FROM outbox_events e WHERE e.event_id = d.event_id AND current_attempt_id = ANY (%s::uuid[])
    RETURNING current_attempt_id)
INSERT INTO outbox_delivery_attempt_finishes (attempt_id, outcome, retry_disposition)
SELECT current_attempt_id, 'acknowledged', 'complete' FROM done
"""


def _acknowledge(attempts: list[str], *, digest: str = "e.event_envelope_sha256") -> dict[str, str]:
    with transaction.atomic(using="default.dispatch"):
        rows(ACKNOWLEDGE.format(digest=digest), attempts, using="default.dispatch")
        return _publish(attempts)


def _publish(attempts: list[str]) -> dict[str, str]:
    found = rows("SELECT event_id::text, verdict FROM outbox_publish(%s::uuid[])", attempts, using="default.dispatch")
    return dict(found)


@pytest.mark.spec("O18")
def test_one_of_two_mandatory_deliveries_is_not_complete_and_the_second_completes(two_destinations: None) -> None:
    leased = _lease(1)
    (event, _), *_ = leased
    first, second = (leased[event, name] for name in ("core_operations", "billing_settlement_catch_up"))
    assert _acknowledge([first]) == {event: "not_complete"}
    assert rows("SELECT published_at FROM outbox_events") == [(None,)]
    assert _acknowledge([second]) == {event: "complete"}
    [(published,)] = rows("SELECT published_at FROM outbox_events")
    assert published is not None


@pytest.mark.spec("O18")
def test_asking_again_for_a_published_event_answers_complete_and_keeps_its_time(two_destinations: None) -> None:
    leased = _lease(1)
    attempts = list(leased.values())
    _acknowledge(attempts)
    before = rows("SELECT published_at FROM outbox_events")
    assert set(_publish(attempts).values()) == {"complete"}
    assert rows("SELECT published_at FROM outbox_events") == before


@pytest.mark.spec("O18")
@pytest.mark.parametrize("case", ["leased", "unknown", "another digest"])
def test_an_attempt_that_is_not_acknowledged_as_demanded_is_invalid_and_rolls_back(
    two_destinations: None, case: str
) -> None:
    leased = list(_lease(1).values())
    with pytest.raises(DatabaseError) as refused:
        if case == "leased":
            _publish(leased)
        elif case == "unknown":
            _publish([str(uuid.uuid4())])
        else:
            _acknowledge(leased, digest="repeat('1', 64)")
    assert refused.value.__cause__.sqlstate == "OB001"  # type: ignore[union-attr]  # psycopg's error
    assert rows("SELECT DISTINCT status FROM outbox_deliveries") == [("leased",)]
    assert rows("SELECT published_at FROM outbox_events") == [(None,)]


@pytest.mark.spec("O18")
def test_under_a_snapshot_the_function_refuses_to_answer(two_destinations: None) -> None:
    with pytest.raises(DatabaseError) as refused, transaction.atomic(using="default.dispatch"):
        rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", using="default.dispatch")
        _publish([])
    assert refused.value.__cause__.sqlstate == "OB002"  # type: ignore[union-attr]  # psycopg's error


@pytest.mark.spec("O18")
@pytest.mark.trap("D29")
def test_two_last_deliveries_that_settle_at_the_same_moment_publish_every_event_once(two_destinations: None) -> None:
    for _ in range(20):
        leased = _lease(40)
        gate = threading.Barrier(2)
        verdicts: list[dict[str, str]] = []

        def settle(
            destination: str,
            leased: dict[tuple[str, str], str] = leased,
            gate: threading.Barrier = gate,
            verdicts: list[dict[str, str]] = verdicts,
        ) -> None:
            attempts = [attempt for (_, name), attempt in leased.items() if name == destination]
            with transaction.atomic(using="default.dispatch"):
                rows(ACKNOWLEDGE.format(digest="e.event_envelope_sha256"), attempts, using="default.dispatch")
                gate.wait()
                verdicts.append(_publish(attempts))
            connections.close_all()

        threads = [
            threading.Thread(target=settle, args=(name,)) for name in ("core_operations", "billing_settlement_catch_up")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        complete = [event for found in verdicts for event, verdict in found.items() if verdict == "complete"]
        assert len(complete) == 40
        assert len(set(complete)) == 40
    assert rows("SELECT count(*) FILTER (WHERE published_at IS NULL), count(*) FROM outbox_events") == [(0, 800)]


@pytest.mark.spec("O18", "O20")
def test_an_invalid_row_is_settled_alone_and_its_neighbours_complete(
    dispatcher: Dispatcher, far_side: FarSide, appended: Callable[..., None]
) -> None:
    from outbox.claim import Claim
    from outbox.deliver import deliver
    from outbox.rows import Ack
    from outbox.settle import settle

    appended(*[run_created() for _ in range(5)])
    connection = connections["default.dispatch"]
    connection.ensure_connection()
    claim: Claim = dispatcher._claimer.claim(connection.connection, "core_operations")
    settlement = deliver(claim.rows, producer="core", destination="core_operations", transport=far_side)
    good = settlement.acks[2]
    forged = good.claimed._replace(envelope_sha256="f" * 64)
    settlement.acks[2] = Ack(forged, good.ack, good.receipt)
    settled = settle(connection.connection, settlement, producer="core", destination="core_operations")
    assert (settled.acknowledged, settled.retried, settled.fenced) == (4, 1, [])
    assert rows("SELECT status, last_error_code, count(*) FROM outbox_deliveries GROUP BY 1, 2 ORDER BY 1") == [
        ("acknowledged", None, 4),
        ("pending", "ack_rejected", 1),
    ]
