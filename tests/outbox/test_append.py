"""Appending inside the owner's transaction."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from outbox import nudge
from outbox.append import (
    AppendRefused,
    DuplicateEvent,
    NotCovered,
    NotInTransaction,
    WrongProducer,
    append,
    append_many,
    ensure_covered,
)
from outbox.contracts.canonical import sha256_hex
from outbox.contracts.delivery_set import DeliverySetDefinition
from outbox.contracts.envelope import Envelope
from outbox.contracts.first_release import first_release
from outbox.register import activate, register
from tests.outbox.conftest import rows
from tests.outbox.make import admission, run_created, wallet_reserved


@pytest.mark.spec("O3", "O5")
def test_an_appended_event_stores_its_canonical_bytes_digest_and_definition(database: None) -> None:
    event = run_created(name="a")
    with transaction.atomic(using="default"):
        written = append(event, using="default")
    [(text, digest, *four_tuple)] = rows(
        "SELECT event_envelope, event_envelope_sha256, delivery_set_version, delivery_set_definition_schema_version,"
        " delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest FROM outbox_events"
    )
    envelope = Envelope.parse(text.encode())
    assert (envelope.event_id, envelope.aggregate_id) == (str(event.event_id), "run:a")
    assert digest == written.envelope_sha256 == sha256_hex(text.encode())
    own = first_release().reference
    assert four_tuple == [own.ref, own.schema_version, own.digest_algorithm_version, own.digest]


@pytest.mark.spec("O5")
def test_exactly_the_mandatory_deliveries_are_created_pending(database: None) -> None:
    with transaction.atomic(using="default"):
        append_many(admission("a"), using="default")
    assert rows(
        "SELECT event_type, destination, consumer_name, status, mandatory, required_projection_name,"
        " required_projection_version, attempt_count FROM outbox_deliveries ORDER BY 1"
    ) == [
        (kind, "core_operations", "operations_projector", "pending", True, "operations", "1", 0)
        for kind in ("run.created@2.0", "wallet.reserved@2.0")
    ]


@pytest.mark.spec("O5", "O10")
@pytest.mark.trap("D16")
def test_a_rollback_leaves_no_row_and_wakes_nobody(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[str] = []
    monkeypatch.setattr("outbox.nudge._send", woken.append)
    with pytest.raises(RuntimeError), transaction.atomic(using="default"), transaction.atomic(using="billing"):
        append_many(admission("a"), using="default")
        raise RuntimeError
    assert rows("SELECT count(*) FROM outbox_events") == [(0,)]
    assert rows("SELECT count(*) FROM outbox_deliveries") == [(0,)]
    assert woken == []


@pytest.mark.trap("D16")
def test_a_savepoint_that_rolls_back_takes_its_event_along_and_keeps_the_others(database: None) -> None:
    with transaction.atomic(using="default"):
        append(run_created(name="kept"), using="default")
        with pytest.raises(RuntimeError), transaction.atomic(using="default"):
            append(run_created(name="gone"), using="default")
            raise RuntimeError
    assert rows("SELECT aggregate_id FROM outbox_events") == [("run:kept",)]


@pytest.mark.spec("O9")
def test_without_an_open_transaction_nothing_is_appended(database: None) -> None:
    with pytest.raises(NotInTransaction, match="Append inside"):
        append(run_created(), using="default")


@pytest.mark.spec("O1", "O9")
def test_an_event_is_appended_at_its_owner_only(database: None) -> None:
    for alias in ("billing", "default.read", "default.dispatch"):
        with pytest.raises(WrongProducer, match="default"), transaction.atomic(using=alias):
            append(run_created(), using=alias)


@pytest.mark.spec("O7", "O9")
def test_an_event_type_by_another_name_is_refused(database: None) -> None:
    for alias in ("run.created", "run.created@2", "run.created@latest", "run.*@2.0"):
        with pytest.raises(WrongProducer, match="exact event type"), transaction.atomic(using="default"):
            append(run_created(event_type=alias), using="default")


@pytest.mark.spec("O9")
def test_a_payload_of_another_contract_is_refused(database: None) -> None:
    run = run_created(name="a")
    wrong = wallet_reserved(name="a", caused_by=uuid.uuid4()).payload
    with pytest.raises(AppendRefused, match="RunCreated"), transaction.atomic(using="default"):
        append(run_created(name="b", payload=wrong), using="default")
    with pytest.raises(LookupError), transaction.atomic(using="default"):
        append(run_created(name="b", event_schema_version="2"), using="default")
    assert run.payload != wrong


@pytest.mark.spec("O5")
@pytest.mark.parametrize(
    "changes",
    [
        {"aggregate_revision": 0},
        {"aggregate_revision": 2**53},
        {"aggregate_id": ""},
        {"aggregate_id": "a b"},
        {"aggregate_id": "a\x00b"},
        {"tenant_kind": "planet"},
        {"occurred_at": datetime(2026, 1, 1)},
        {"operation_id": "x" * 201},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_an_envelope_that_is_not_canonical_safe_is_refused(database: None, changes: dict[str, Any]) -> None:
    with pytest.raises(AppendRefused), transaction.atomic(using="default"):
        append(run_created(**changes), using="default")
    assert rows("SELECT count(*) FROM outbox_events") == [(0,)]


@pytest.mark.spec("O3")
def test_one_fact_never_yields_two_events(database: None) -> None:
    with transaction.atomic(using="default"):
        append(run_created(name="a"), using="default")
    with pytest.raises(DuplicateEvent), transaction.atomic(using="default"):
        append(run_created(name="a"), using="default")
    same = run_created(name="b")
    with transaction.atomic(using="default"):
        append(same, using="default")
    with pytest.raises(DuplicateEvent), transaction.atomic(using="default"):
        append(run_created(name="c", event_id=same.event_id), using="default")


@pytest.fixture
def other_definition(database: None) -> Iterator[Callable[[DeliverySetDefinition], None]]:
    """Activate another definition at core, and put the first release back afterwards."""

    def run(definition: DeliverySetDefinition) -> None:
        register(definition, source_release="test", using="default.schema")
        activate(definition.delivery_set_version, using="default.schema")

    yield run
    forget_definitions()


def forget_definitions() -> None:
    """Empty core's registry and register the first release again."""
    with connections["default.schema"].cursor() as cursor:
        tables = "outbox_events, outbox_deliveries, delivery_set_versions, delivery_set_events, delivery_set_members"
        for table in tables.split(", "):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(f"TRUNCATE {tables} CASCADE")
        for table in tables.split(", "):
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    register(first_release(), source_release="test", using="default.schema")
    activate(first_release().delivery_set_version, using="default.schema")


@pytest.mark.spec("O9")
def test_an_event_the_active_definition_does_not_cover_is_refused(
    other_definition: Callable[[DeliverySetDefinition], None],
) -> None:
    members = [m for m in first_release().members if m.event_type != "wallet.reserved@2.0"]
    other_definition(DeliverySetDefinition.define(version="without-wallet", members=members))
    with pytest.raises(NotCovered, match="wallet"), transaction.atomic(using="default"):
        append_many(admission("a"), using="default")
    assert rows("SELECT count(*) FROM outbox_events") == [(0,)]
    with pytest.raises(NotCovered):
        ensure_covered("wallet.reserved@2.0", "2.0", using="default")
    assert ensure_covered("run.created@2.0", "2.0", using="default").delivery_set_version == "without-wallet"


@pytest.mark.spec("O9")
def test_a_refused_event_cannot_be_committed_by_swallowing_the_refusal(
    other_definition: Callable[[DeliverySetDefinition], None],
) -> None:
    members = [m for m in first_release().members if m.event_type != "wallet.reserved@2.0"]
    other_definition(DeliverySetDefinition.define(version="without-wallet", members=members))
    with transaction.atomic(using="default"):
        append(run_created(name="a"), using="default")
        with suppress(NotCovered):
            append(wallet_reserved(name="a", caused_by=uuid.uuid4()), using="default")
    assert rows("SELECT count(*) FROM outbox_events") == [(0,)]


@pytest.mark.spec("O9")
def test_a_member_that_is_not_mandatory_does_not_cover_its_event(
    other_definition: Callable[[DeliverySetDefinition], None],
) -> None:
    members = [m.model_copy(update={"mandatory": False}) for m in first_release().members]
    other_definition(DeliverySetDefinition.define(version="nothing-mandatory", members=members))
    with pytest.raises(NotCovered), transaction.atomic(using="default"):
        append(run_created(), using="default")


@pytest.mark.spec("O5", "O6", "O8")
def test_activation_waits_for_appends_under_way_and_pending_events_keep_their_definition(
    other_definition: Callable[[DeliverySetDefinition], None],
) -> None:
    second = DeliverySetDefinition.define(version="second", members=first_release().members)
    activated = threading.Event()

    def switch() -> None:
        other_definition(second)
        activated.set()
        connections.close_all()

    with transaction.atomic(using="default"):
        append(run_created(name="before"), using="default")
        thread = threading.Thread(target=switch)
        thread.start()
        _wait_until_somebody_waits_for_a_lock()
        assert not activated.is_set()
    thread.join()
    with transaction.atomic(using="default"):
        append(run_created(name="after"), using="default")
    assert rows("SELECT aggregate_id, delivery_set_version FROM outbox_events ORDER BY created_at") == [
        ("run:before", first_release().delivery_set_version),
        ("run:after", "second"),
    ]


def _wait_until_somebody_waits_for_a_lock() -> None:
    for _ in range(100_000):
        if rows(
            "SELECT 1 FROM pg_locks WHERE NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ):
            return
    raise AssertionError("nobody waits")


@pytest.mark.trap("D20")
def test_many_writers_append_at_once_and_every_event_is_there(database: None) -> None:
    def write(number: int) -> None:
        for index in range(5):
            with transaction.atomic(using="default"):
                append_many(admission(f"{number}-{index}"), using="default")
        connections.close_all()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows("SELECT count(*), count(DISTINCT aggregate_id) FROM outbox_events") == [(160, 160)]
    assert rows("SELECT count(*) FROM outbox_deliveries WHERE status = 'pending'") == [(160,)]


@pytest.mark.trap("D14")
def test_a_broker_that_does_not_answer_fails_no_commit(database: None, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    nudge._client.cache_clear()
    try:
        with transaction.atomic(using="default"):
            append(run_created(), using="default")
        assert nudge.nudge("core") is False
    finally:
        nudge._client.cache_clear()
    assert rows("SELECT count(*) FROM outbox_events") == [(1,)]


@pytest.mark.spec("O5")
def test_a_forged_event_is_refused_by_the_database_itself(database: None) -> None:
    with transaction.atomic(using="default"):
        append(run_created(name="a"), using="default")
    columns = (
        "event_id, event_type, schema_version, delivery_set_version, delivery_set_definition_schema_version,"
        " delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest, aggregate_id,"
        " aggregate_revision, tenant_kind, tenant_id, workspace_id, correlation_id, operation_id, event_envelope,"
        " event_envelope_digest_algorithm_version, event_envelope_sha256, occurred_at"
    )
    for changed, constraint in (
        ({"event_envelope_sha256": f"'{'0' * 64}'"}, "outbox_event_digest"),
        ({"tenant_id": "'somebody-else'"}, "outbox_event_columns"),
        ({"aggregate_revision": "2"}, "outbox_event_columns"),
        ({"occurred_at": "now()"}, "outbox_event_columns"),
    ):
        values = ", ".join(changed.get(name.strip(), name) for name in columns.split(","))
        with pytest.raises(DatabaseError) as refused, transaction.atomic(using="default"):
            rows(f"INSERT INTO outbox_events ({columns}) SELECT {values} FROM outbox_events", using="default")
        assert refused.value.__cause__.diag.constraint_name == constraint  # type: ignore[union-attr]  # psycopg's error
